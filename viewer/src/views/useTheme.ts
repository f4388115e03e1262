import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import { usePrinting } from "./usePrinting";

const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

function remembered(): Theme {
  try {
    const name = localStorage.getItem("devsan-theme");
    return THEMES.find((theme) => theme === name) ?? "system";
  } catch {
    return "system"; // a page of a file may have no storage
  }
}

// Charts have the colors that they were drawn in: this draws them anew.
function redrawCharts(): void {
  window.dispatchEvent(new Event("devsan-theme"));
}

// Paper is light.
export function useTheme(): [Theme, () => void] {
  const [theme, set] = useState(remembered);
  const printing = usePrinting();
  useEffect(() => {
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", redrawCharts);
    return () => dark.removeEventListener("change", redrawCharts);
  }, []);
  useLayoutEffect(() => {
    document.documentElement.style.colorScheme = printing ? "light" : theme === "system" ? "light dark" : theme;
    redrawCharts();
  }, [theme, printing]);
  useLayoutEffect(() => {
    document.documentElement.dataset["theme"] = theme;
    try {
      localStorage.setItem("devsan-theme", theme);
    } catch {
      // It is not remembered.
    }
  }, [theme]);
  return [theme, () => set((now) => THEMES[(THEMES.indexOf(now) + 1) % THEMES.length] ?? "system")];
}

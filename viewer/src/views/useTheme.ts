import { useLayoutEffect, useState } from "preact/hooks";

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

export function useTheme(): [Theme, () => void] {
  const [theme, set] = useState(remembered);
  useLayoutEffect(() => {
    document.documentElement.style.colorScheme = theme === "system" ? "light dark" : theme;
    document.documentElement.dataset["theme"] = theme;
    window.dispatchEvent(new Event("devsan-theme"));
    try {
      localStorage.setItem("devsan-theme", theme);
    } catch {
      // It is not remembered.
    }
  }, [theme]);
  return [theme, () => set((now) => THEMES[(THEMES.indexOf(now) + 1) % THEMES.length] ?? "system")];
}

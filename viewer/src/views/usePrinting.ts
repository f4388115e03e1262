import { useEffect, useState } from "preact/hooks";

const ABOUT_TO_PRINT = "devsan-print";

// Prints what `usePrinting` changes as well: the page is drawn anew only once this script has ended, while a browser takes
// what it prints at once.
export function print(): void {
  window.dispatchEvent(new Event(ABOUT_TO_PRINT));
  setTimeout(() => window.print());
}

// Whether the page is being printed, or about to be.
export function usePrinting(): boolean {
  const [printing, set] = useState(false);
  useEffect(() => {
    const query = matchMedia("print");
    const begin = () => set(true);
    const end = () => set(false);
    const onChange = () => set(query.matches);
    window.addEventListener(ABOUT_TO_PRINT, begin);
    window.addEventListener("beforeprint", begin);
    window.addEventListener("afterprint", end);
    query.addEventListener("change", onChange);
    return () => {
      window.removeEventListener(ABOUT_TO_PRINT, begin);
      window.removeEventListener("beforeprint", begin);
      window.removeEventListener("afterprint", end);
      query.removeEventListener("change", onChange);
    };
  }, []);
  return printing;
}

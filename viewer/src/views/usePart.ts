import { useEffect, useState } from "preact/hooks";
import { part } from "../model/parts";

export type Loaded<T> = { state: "loading" } | { state: "ready"; data: T | null };

export function usePart<T>(name: string): Loaded<T> {
  const [loaded, set] = useState<Loaded<T> | { state: "failed"; why: string }>({ state: "loading" });
  useEffect(() => {
    // After the view has been painted without it.
    const timer = setTimeout(() => {
      try {
        set({ state: "ready", data: part(name) as T | null });
      } catch (error) {
        set({ state: "failed", why: String(error) });
      }
    });
    return () => clearTimeout(timer);
  }, [name]);
  if (loaded.state === "failed") throw new Error(`its data cannot be read: ${loaded.why}`); // as its Boundary tells
  return loaded;
}

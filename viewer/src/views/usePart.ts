import { useEffect, useState } from "preact/hooks";
import { part } from "../model/parts";

export type Loaded<T> = { state: "loading" } | { state: "failed"; why: string } | { state: "ready"; data: T | null };

export function usePart<T>(name: string): Loaded<T> {
  const [loaded, set] = useState<Loaded<T>>({ state: "loading" });
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
  return loaded;
}

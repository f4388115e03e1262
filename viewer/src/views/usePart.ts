import { useEffect, useState } from "preact/hooks";
import { part } from "../model/parts";

export type Loaded<T> = { state: "loading" } | { state: "failed"; why: string } | { state: "ready"; data: T | null };

export function usePart<T>(name: string): Loaded<T> {
  const [loaded, set] = useState<Loaded<T>>({ state: "loading" });
  useEffect(() => {
    part(name).then(
      (data) => set({ state: "ready", data: data as T | null }),
      (error: unknown) => set({ state: "failed", why: String(error) }),
    );
  }, [name]);
  return loaded;
}

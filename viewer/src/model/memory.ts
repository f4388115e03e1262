// Curves of memory, as the page's part "memory" has them: columns, times in milliseconds since the run began.

import type { Process } from "./report";

export interface Curve {
  device: string | null;
  clock?: string;
  points: number; // in the trace; the columns may have fewer
  peak: { step: number; used: number; held: number; time: number };
  step: number[];
  used: number[];
  held: number[];
  time: number[];
}

export interface MemoryPart {
  processes: Curve[][];
}

export function processName(process: Process): string {
  const name = process.rank === null ? `pid ${process.pid}` : `rank ${process.rank}`;
  return (process.attempt ?? 0) > 0 ? `${name}, attempt ${process.attempt ?? 0}` : name;
}

export function curveName(curve: Curve): string {
  return curve.device ?? "host";
}

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

// What the tensors that one operator made at one line kept when their device had most in use.
export interface LiveSite {
  device: string; // "" is the host
  op: string;
  file: string;
  line: number;
  bytes: number;
  tensors: number;
}

export interface MemoryPart {
  texts: string[];
  processes: Curve[][];
  sites: number[][]; // six numbers for each, three of which point into `texts`
}

const FIELDS = 6;

// The largest first.
export function liveSites(part: MemoryPart, process: number): LiveSite[] {
  const packed = part.sites[process] ?? [];
  const text = (number: number | undefined) => part.texts[number ?? -1] ?? "";
  const sites: LiveSite[] = [];
  for (let i = 0; i + FIELDS <= packed.length; i += FIELDS) {
    const [device, op, file, line, bytes, tensors] = packed.slice(i, i + FIELDS);
    sites.push({ device: text(device), op: text(op), file: text(file), line: line ?? 0, bytes: bytes ?? 0, tensors: tensors ?? 0 });
  }
  return sites;
}

export function processName(process: Process): string {
  const name = process.rank === null ? `pid ${process.pid}` : `rank ${process.rank}`;
  return (process.attempt ?? 0) > 0 ? `${name}, attempt ${process.attempt ?? 0}` : name;
}

export function curveName(curve: Curve): string {
  const device = curve.device ?? "host";
  return curve.clock === undefined ? device : `${device}, by ${curve.clock.replaceAll("-", " ")}`;
}

// One curve of each device: that of its iterations, where it has one, since steps stand above it.
export function curvesToDraw(curves: Curve[]): Curve[] {
  const iterating = new Set(curves.filter((curve) => curve.clock === undefined).map((curve) => curve.device));
  return curves.filter((curve) => curve.clock === undefined || !iterating.has(curve.device));
}

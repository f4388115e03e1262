// Curves of memory, as the page's part "memory" has them: columns, times in milliseconds since the run began.

import { bytesText } from "./format";

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

// What was in tensors of a device, or of the host, when most was.
export interface Peak {
  device: string | null; // null: the host
  peak: { bytes: number; step: number; in_backward: boolean } | null; // the most the allocator ever had in tensors
  step: number; // of the look that the rest is of
  moment: "backward-begins" | "backward-ended" | "census";
  allocated: number; // 0: not known
  reserved: number;
  listed: number;
  by_kind: { kind: string; bytes: number; tensors: number }[];
  by_place: number[]; // six numbers for each, three of which point into `texts`
}

export interface PeakPlace {
  kind: string;
  op: string;
  file: string;
  line: number;
  bytes: number;
  tensors: number;
}

export interface MemoryPart {
  texts: string[];
  processes: Curve[][];
  peaks: Peak[][];
}

const FIELDS = 6;

// The largest first.
export function peakPlaces(texts: string[], peak: Peak): PeakPlace[] {
  const text = (number: number | undefined) => texts[number ?? -1] ?? "";
  const places: PeakPlace[] = [];
  for (let i = 0; i + FIELDS <= peak.by_place.length; i += FIELDS) {
    const [kind, op, file, line, bytes, tensors] = peak.by_place.slice(i, i + FIELDS);
    places.push({ kind: text(kind), op: text(op), file: text(file), line: line ?? 0, bytes: bytes ?? 0, tensors: tensors ?? 0 });
  }
  return places;
}

// When that was, and how much more there has been.
export function peakText(peak: Peak): string {
  const moments = {
    "backward-begins": `the backward of step ${peak.step} began`,
    "backward-ended": `the backward of step ${peak.step} was over`,
    census: `step ${peak.step} began`,
  };
  const text = `${bytesText(peak.allocated || peak.listed)} in tensors when ${moments[peak.moment]}.`;
  if (!peak.peak || peak.peak.bytes <= peak.allocated) return text;
  const when = peak.peak.in_backward ? "in" : "before";
  return `${text} The most there ever was: ${bytesText(peak.peak.bytes)}, ${when} the backward of step ${peak.peak.step}.`;
}

// What no operator was seen to make, where that is worth a word.
export function unlisted(peak: Peak): number {
  const rest = peak.allocated - peak.listed;
  return rest > peak.allocated / 100 ? rest : 0;
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

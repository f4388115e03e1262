// When steps and their phases were, as the page's part "timeline" has them: columns, in microseconds; the begin of a
// step counts from that of the run. What is left of a step after its phases is its rest.

export const PHASES = ["forward", "backward", "optimizer", "data", "rest"] as const;
export type Phase = (typeof PHASES)[number];

// As they follow one another. What lies between a backward and the optimizer counts as the rest of the step; what a step
// has waited for data, wherever it did, stands at its end.
const COLUMNS = ["forward", "backward", "between", "optimizer", "rest", "data"] as const;
type ColumnName = (typeof COLUMNS)[number];
const PHASE_OF: Record<ColumnName, Phase> = {
  forward: "forward", backward: "backward", between: "rest", optimizer: "optimizer", rest: "rest", data: "data",
};

// `data` is null where no wait for a DataLoader was seen.
export type Steps = { step: number[]; begin: number[]; taken: number; data: number[] | null } & Record<Exclude<ColumnName, "data">, number[]>;

// When a process waited in a collective.
export interface Waits {
  begin: number[];
  length: number[];
  name: number[]; // points into `texts`
}

export interface TimelinePart {
  texts: string[];
  processes: (Steps | null)[];
  waits: (Waits | null)[];
}

export const NO_STEPS: Steps = { step: [], begin: [], taken: 0, forward: [], backward: [], between: [], optimizer: [], rest: [], data: null };

export interface Span {
  from: number; // seconds since the run began
  to: number;
}

const MICROSECOND = 1e-6;
const LEAST_SPAN = MICROSECOND;

// With the moments of failures, which may lie after all that is known of steps.
export function extentOf(part: TimelinePart, failures: (number | null)[]): Span {
  let [from, to] = [Infinity, 0];
  for (const steps of part.processes) {
    if (!steps || steps.begin.length === 0) continue;
    from = Math.min(from, (steps.begin[0] ?? 0) * MICROSECOND);
    const last = steps.begin.length - 1;
    to = Math.max(to, ((steps.begin[last] ?? 0) + lengthOf(steps, last)) * MICROSECOND);
  }
  for (const waits of part.waits) {
    waits?.begin.forEach((begin, i) => {
      from = Math.min(from, begin * MICROSECOND);
      to = Math.max(to, (begin + (waits.length[i] ?? 0)) * MICROSECOND);
    });
  }
  for (const failed of failures) {
    if (failed === null) continue;
    from = Math.min(from, failed);
    to = Math.max(to, failed);
  }
  if (from > to) return { from: 0, to: 1 };
  const length = to - from;
  if (length <= LEAST_SPAN) return { from: Math.max(0, from - 0.5), to: to + 0.5 };
  return { from, to: failures.includes(to) ? to + length / 100 : to }; // the mark of a failure has a width
}

// What a drag from one moment to another shows; none where that is too short to be meant, or to be drawn.
export function spanBetween(one: number, other: number): Span | null {
  const span = { from: Math.min(one, other), to: Math.max(one, other) };
  return span.to - span.from > LEAST_SPAN ? span : null;
}

export function lengthOf(steps: Steps, i: number): number {
  return COLUMNS.reduce((sum, column) => sum + (steps[column]?.[i] ?? 0), 0);
}

// Calls `draw` with each phase of each step that lies in the span, in their order.
export function eachPhase(steps: Steps, span: Span, draw: (phase: Phase, from: number, to: number) => void): void {
  for (let i = 0; i < steps.begin.length; i += 1) {
    let at = (steps.begin[i] ?? 0) * MICROSECOND;
    if (at > span.to) return;
    for (const column of COLUMNS) {
      const length = (steps[column]?.[i] ?? 0) * MICROSECOND;
      if (length > 0 && at + length >= span.from && at <= span.to) draw(PHASE_OF[column], at, at + length);
      at += length;
    }
  }
}

// Calls `draw` with each wait that lies in the span.
export function eachWait(waits: Waits, span: Span, draw: (from: number, to: number) => void): void {
  waits.begin.forEach((begin, i) => {
    const from = begin * MICROSECOND;
    const to = from + (waits.length[i] ?? 0) * MICROSECOND;
    if (to >= span.from && from <= span.to) draw(from, to);
  });
}

export interface WaitSummary {
  count: number;
  longest: number; // seconds
  name: string; // of the longest
}

export function waitSummaryOf(waits: Waits | null, texts: string[]): WaitSummary {
  if (!waits) return { count: 0, longest: 0, name: "" };
  const longest = Math.max(...waits.length);
  return { count: waits.length.length, longest: longest * MICROSECOND, name: texts[waits.name[waits.length.indexOf(longest)] ?? -1] ?? "" };
}

export interface Summary {
  shown: number;
  taken: number;
  median: number; // seconds
  longest: number;
  longestStep: number;
  shares: Record<Phase, number>;
  dataIsTold: boolean;
}

export function summaryOf(steps: Steps): Summary {
  const lengths = steps.begin.map((_, i) => lengthOf(steps, i));
  const sorted = [...lengths].sort((a, b) => a - b);
  const all = lengths.reduce((a, b) => a + b, 0);
  const longest = Math.max(0, ...lengths);
  const sum = (column: ColumnName) => (steps[column] ?? []).reduce((a, b) => a + b, 0);
  const share = (...columns: ColumnName[]) => (all === 0 ? 0 : columns.map(sum).reduce((a, b) => a + b, 0) / all);
  return {
    shown: lengths.length,
    taken: steps.taken,
    median: (sorted[Math.floor(sorted.length / 2)] ?? 0) * MICROSECOND,
    longest: longest * MICROSECOND,
    longestStep: steps.step[lengths.indexOf(longest)] ?? 0,
    shares: {
      forward: share("forward"), backward: share("backward"), optimizer: share("optimizer"), data: share("data"), rest: share("between", "rest"),
    },
    dataIsTold: steps.data !== null,
  };
}

// Zoomed around a moment, within the whole.
export function zoomed(span: Span, whole: Span, factor: number, around: number): Span {
  const from = Math.max(whole.from, around - (around - span.from) * factor);
  const to = Math.min(whole.to, around + (span.to - around) * factor);
  return spanBetween(from, to) ?? span;
}

export function moved(span: Span, whole: Span, by: number): Span {
  const shift = Math.max(whole.from - span.from, Math.min(whole.to - span.to, by * (span.to - span.from)));
  return { from: span.from + shift, to: span.to + shift };
}

// The report as the page has it: that of `devsan view --json` (docs/report-schema.md) but for what is large of its
// processes, which comes in parts of its own.

import type * as schema from "./schema";

export type { Collective, Damage, EarlierFailure, Fix, Frame, LineageStep, LiveRow, NativeFrame, Operand, Silence } from "./schema";
export type Finding = schema.Finding;
export type Severity = Finding["severity"];
export type Place = Pick<schema.Frame, "file" | "line" | "function">;
export type SourcePlace = Pick<schema.Frame, "file" | "line" | "function" | "source">;
export type Patch = schema.Fix["patches"][number];
export type Cause = schema.RootCause & Partial<Pick<schema.Alternative, "fix">>;
export type Growth = NonNullable<Finding["growth"]>;
export type GrowthPart = Growth["parts"][number];
export type LiveMemory = NonNullable<Finding["live_memory"]>;
export type Writer = NonNullable<Finding["writers"]>[number];
export type CollectiveRank = schema.Collective["per_rank"][number];

export type Process = Omit<schema.Process, "threads" | "memory" | "peak_memory" | "device_calls" | "collectives">;
export type Run = Omit<schema.Run, "processes" | "suppressions"> & { processes: Process[]; suppressions: schema.Suppression[] };
export type Report = Omit<schema.Report, "run" | "suppressed"> & { run: Run; suppressed: Finding[] };

// Part of a line of source: byte offsets, as those of Frame.
export interface Mark {
  begin: number;
  end: number;
  odd: boolean;
  label: string;
}

// What the terminal says of a finding beside its headline.
export interface Sentences {
  silence?: string;
  cost?: string; // of traffic
  room?: string; // on the device that was full
  what_grows?: string;
  outlook?: string; // of what grows
}

// What the page knows beside the report, by the id of a finding or the path of a file.
export interface Beside {
  headlines: Record<string, string>;
  sentences: Record<string, Sentences>;
  marks: Record<string, Mark[]>;
  sources: Record<string, { first: number; lines: string[] }[]>;
}

export interface Head {
  report: Report;
  beside: Beside;
}

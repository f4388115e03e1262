// The report as `devsan view --json` writes it (docs/report-schema.md), as far as the page shows it. Fields that another
// release may lack are optional.

export type Severity = "error" | "warning" | "note";

export interface Place {
  file: string;
  line: number;
  function: string | null;
}

export interface SourcePlace extends Place {
  source: string | null;
}

export interface Frame extends SourcePlace {
  end_line: number;
  column: number | null;
  end_column: number | null;
  torch: boolean;
  library: boolean;
}

export interface NativeFrame {
  module: string | null;
  symbol: string | null;
  offset: number;
}

export interface LineageStep extends SourcePlace {
  op: string | null;
  how: string;
  device: string | null;
  calls?: SourcePlace[];
  within?: SourcePlace[];
}

export interface Operand {
  arg: string;
  name: string | null;
  text: string | null;
  device: string | null;
  shape: number[] | null;
  hidden_dims?: number;
  dtype: string | null;
  odd: boolean;
  is: string;
  generator?: boolean;
  device_argument?: boolean;
  number?: boolean;
  lineage: LineageStep[];
}

export interface Patch {
  file: string;
  diff: string;
}

export interface Fix {
  file: string;
  line: number;
  text: string;
  patches?: Patch[];
}

export interface Cause extends SourcePlace {
  operand: string | null;
  why: string;
  mechanism: string | null;
  confidence: "likely" | "possible" | null;
  fix?: Fix | null;
}

export interface GrowthPart {
  file: string;
  line: number;
  op: string | null;
  bytes_per_step: number;
  tensors_per_step: number;
  bytes: number;
}

export interface Growth {
  device: string | null;
  holder: string | null;
  graph: boolean;
  since: number;
  bytes_per_step: number;
  bytes: number;
  steps_left: number | null;
  parts: GrowthPart[];
}

export interface LiveRow {
  bytes: number;
  tensors: number;
  kind?: string;
  module?: string;
  op?: string | null;
  file?: string;
  line?: number;
}

export interface LiveMemory {
  device: string | null;
  asked: number | null;
  capacity: number | null;
  free: number | null;
  allocated: number;
  reserved: number;
  listed: number;
  peak_step: number | null;
  by_kind: LiveRow[];
  by_module: LiveRow[];
  by_place: LiveRow[];
}

export interface Ending {
  signal: string | null;
  status: number | null;
  oom_kills: number | null;
  named_by_kernel: boolean;
  hint?: string | null;
}

export interface ThreadStack {
  name: string | null;
  tid: number | null;
  stack: Frame[];
}

export interface CollectiveRank {
  rank: number;
  state: string;
  where: Frame | null;
  what: string | null;
  threads?: ThreadStack[];
}

export interface Collective {
  name: string | null;
  group: string | null;
  group_ranks: number[];
  sequence: number | null;
  dtype: string | null;
  bytes: number | null;
  device: string | null;
  per_rank: CollectiveRank[];
}

export interface Silence {
  by: string;
  file?: string;
  line?: number;
  text?: string;
  reason?: string | null;
}

export interface Finding {
  id: string;
  kind: string;
  severity: Severity;
  raised: boolean;
  handled: boolean;
  message: string | null;
  op: string | null;
  where: Frame | null;
  stack: Frame[];
  forward: Frame[] | null;
  native_stack?: NativeFrame[];
  operands: Operand[];
  root_cause: Cause | null;
  alternatives: Cause[];
  fix: Fix | null;
  step: number;
  phase: string;
  rank: number | null;
  ranks: number[];
  pid: number;
  thread: number;
  thread_name: string | null;
  count: number;
  time: string | null;
  bytes?: number;
  per_step?: number;
  ending?: Ending;
  growth?: Growth;
  live_memory?: LiveMemory;
  silence?: Silence;
  collective?: Collective | null;
  other_ranks?: number[];
  ended_ranks?: { ranks: number[]; what: string }[];
  differs?: { what: string; here: string; there: string }[];
  expectation?: { rule: string; expected: string; found: string } | null;
  writers?: { frame: Frame; when: string }[];
}

// A process as the page has it from the start. What is large of it comes in parts of its own.
export interface Process {
  pid: number;
  rank: number | null;
  host: string | null;
  command: string | null;
  trace: string;
  start: string | null;
  close: string;
  steps: number;
  optimizer_steps: number;
  operators: number;
  lost_events: number;
  info: Record<string, string>;
  local_rank?: number | null;
  node?: number | null;
  attempt?: number | null;
  ended?: unknown;
}

export interface FirstFailure {
  rank: number | null;
  step: number;
  time_ns: number;
  finding: string | null;
  where: Frame | null;
  what?: string | null;
  missing?: number[];
  last_operator?: Frame;
  waiting?: Collective | null;
}

export interface Run {
  id: string | null;
  other_runs: number;
  command: string | null;
  host: string | null;
  hosts: string[];
  start: string | null;
  end: string | null;
  versions: Record<string, string>;
  steps: number;
  optimizer_steps: number;
  notices: { text: string; pid: number; rank: number | null; count: number }[];
  suppressions: { file: string; line: number; text: string; reason: string | null; count: number }[];
  processes: Process[];
  first_failure?: FirstFailure | null;
}

export interface Damage {
  file: string;
  offset: number;
  bytes: number;
  reason: string;
}

export interface Report {
  schema: string;
  run: Run;
  findings: Finding[];
  suppressed: Finding[];
  damage: Damage[];
}

// Part of a line of source: byte offsets, as those of Frame.
export interface Mark {
  begin: number;
  end: number;
  odd: boolean;
  label: string;
}

// What the page knows beside the report, by the id of a finding or the path of a file.
export interface Beside {
  headlines: Record<string, string>;
  marks: Record<string, Mark[]>;
  sources: Record<string, { first: number; lines: string[] }[]>;
}

export interface Head {
  report: Report;
  beside: Beside;
}

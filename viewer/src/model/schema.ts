// Made from report/render/report.schema.json: `npx vitest run -u` in viewer/ makes it anew.

// A position in Python code.
export interface Frame {
  file: string;
  line: number;
  function: string | null;
  source: string | null;
  end_line: number;
  column: number | null;
  end_column: number | null;
  torch: boolean;
  library: boolean;
}

// A position in native code.
export interface NativeFrame {
  module: string | null;
  symbol: string | null;
  offset: number;
}

// One step in the history of a value's device.
export interface LineageStep {
  file: string;
  line: number;
  function: string | null;
  op: string | null;
  how: "created" | "moved" | "derived";
  device: string | null;
  source: string | null;
  calls?: Calls;
  within?: Calls;
}

export type Calls = {
  file: string;
  line: number;
  function: string | null;
  source: string | null;
}[];

export interface Operand {
  arg: string;
  name: string | null;
  text: string | null;
  device: string | null;
  shape: number[] | null;
  hidden_dims?: number;
  dtype: string | null;
  odd: boolean;
  is: "parameter" | "buffer" | "attribute" | "local" | "temporary" | "unknown";
  generator?: true;
  device_argument?: true;
  number?: true;
  lineage: LineageStep[];
}

export interface RootCause {
  file: string;
  line: number;
  function: string | null;
  source: string | null;
  operand: string | null;
  why: string;
  mechanism: string | null;
  confidence: "likely" | "possible" | null;
}

export interface Fix {
  file: string;
  line: number;
  text: string;
  patches: {
    file: string;
    diff: string;
  }[];
}

export interface Alternative {
  file: RootCause["file"];
  line: RootCause["line"];
  function: RootCause["function"];
  source: RootCause["source"];
  operand: RootCause["operand"];
  why: RootCause["why"];
  mechanism: RootCause["mechanism"];
  confidence: RootCause["confidence"];
  fix: Fix | null;
}

export interface Finding {
  id: string;
  kind: "device-mismatch" | "mixed-operands" | "implicit-sync" | "implicit-transfer" | "unpinned-async-copy" | "async-race" | "wrong-placement" | "attribute-overwritten" | "memory-growth" | "out-of-memory" | "host-dereference" | "abnormal-exit" | "collective-hang" | "collective-mismatch" | "collective-slow";
  severity: "error" | "warning" | "note";
  raised: boolean;
  handled: boolean;
  message: string | null;
  op: string | null;
  where: Frame | null;
  stack: Frame[];
  forward: Frame[] | null;
  native_stack?: NativeFrame[];
  operands: Operand[];
  host_access?: {
    writes: boolean;
    byte: number | null;
    bytes: number | null;
  };
  root_cause: RootCause | null;
  alternatives: Alternative[];
  fix: Fix | null;
  step: number;
  phase: "forward" | "backward" | "optimizer" | "data" | "checkpoint" | "other";
  rank: number | null;
  ranks: number[];
  other_ranks?: number[];
  ended_ranks?: {
    ranks: number[];
    what: string;
  }[];
  differs?: {
    what: string;
    here: string;
    there: string;
  }[];
  pid: number;
  thread: number;
  thread_name: string | null;
  attribute?: string;
  writers?: {
    file: string;
    line: number;
    function: string | null;
    source: string | null;
    when: "first" | "last";
    value: string | null;
  }[];
  expectation?: {
    rule: string;
    sentence: string;
    file: string | null;
    line: number;
    expected: string;
    found: string;
    tensors: number;
    names: string[];
  };
  growth?: {
    device: string | null;
    holder: string | null;
    graph: boolean;
    since: number;
    bytes_per_step: number;
    records_per_step?: number;
    bytes: number;
    steps_left: number | null;
    clock: "iterations" | "shared-tensors" | "rounds";
    parts: {
      op: string;
      file: string | null;
      line: number;
      bytes_per_step: number;
      tensors_per_step: number;
      bytes: number;
    }[];
  };
  collective?: Collective;
  live_memory?: {
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
  };
  ending?: {
    signal: string | null;
    status: number | null;
    oom_kills: number | null;
    named_by_kernel: boolean;
    hint?: string | null;
  };
  count: number;
  time: string | null;
  bytes?: number;
  silence?: Silence;
  per_step?: number;
}

// Why a finding is among the suppressed ones.
export interface Silence {
  by: "suppression" | "allow" | "expect";
  file?: string;
  line?: number;
  text?: string;
  reason?: string | null;
}

// An entry of a file of suppressions.
export interface Suppression {
  file: string;
  line: number;
  text: string;
  reason: string | null;
  count: number;
}

export interface LastOperator {
  op: string | null;
  file: string | null;
  line: number;
  function: string | null;
  step: number;
}

export interface Thread {
  tid: number;
  name: string | null;
  operators: number;
  last: LastOperator[];
}

export interface Process {
  pid: number;
  parent_pid: number;
  rank: number | null;
  local_rank: number | null;
  world_size: number | null;
  node: number | null;
  attempt: number | null;
  run: string | null;
  host: string | null;
  command: string | null;
  trace: string;
  start: string | null;
  ended?: string | null;
  first_error_ns?: number | null;
  ended_after?: number;
  close: "open" | "exited" | "quick-exited" | "executed" | "halted" | "stopped";
  steps: number;
  optimizer_steps: number;
  operators: number;
  lost_events: number;
  info: Record<string, string>;
  threads: Thread[];
  memory?: MemoryCurve[];
  peak_memory?: PeakMemory[];
  device_calls?: DeviceCalls;
  collectives?: Collectives;
}

export interface MemoryCurve {
  device: string | null;
  peak: MemoryPoint;
  clock?: "shared-tensors";
  points: MemoryPoint[];
}

export interface PeakMemory {
  device: string | null;
  peak: {
    bytes: number;
    step: number;
    in_backward: boolean;
  } | null;
  step: number;
  moment: "backward-begins" | "backward-ended" | "census";
  time: string | null;
  allocated: number;
  reserved: number;
  listed: number;
  by_kind: LiveRow[];
  by_place: LiveRow[];
}

// largest first; of its fields those that the list is about
export interface LiveRow {
  kind?: "parameters" | "gradients" | "optimizer state" | "buffers" | "activations" | "inputs and data" | "not known" | "other";
  module?: string;
  op?: string;
  file?: string | null;
  line?: number;
  bytes: number;
  tensors: number;
}

export interface MemoryPoint {
  step: number;
  used: number;
  held: number;
  time: string | null;
}

// What the process called of CUDA's driver and runtime; absent where it called nothing.
export interface DeviceCalls {
  made: number;
  memory: DeviceMemory[];
  calls: DeviceCall[];
  last: LastCall[];
}

export interface DeviceMemory {
  device: string | null;
  space: "device" | "managed" | "pinned" | "registered";
  live: number;
  peak: number;
  peak_step: number;
  blocks: number;
  untracked: number;
}

export interface DeviceCall {
  call: string;
  kind: string;
  device: string | null;
  space?: "device" | "managed" | "pinned" | "registered";
  direction?: "host-to-device" | "device-to-host" | "device-to-device" | "host-to-host";
  async: boolean;
  pageable?: boolean;
  count: number;
  failed: number;
  captured: number;
  waits: number;
  bytes: number;
  wait_ns: number;
}

export interface LastCall {
  call: string;
  device: string | null;
  address: string;
  bytes: number;
  context: string;
  stream: string;
  result: number;
  captured: boolean;
  waited: boolean;
  thread: number;
  step: number;
  time: string | null;
}

// A collective of a process group, and how far each rank came in it.
export interface Collective {
  name: string | null;
  group: string | null;
  group_ranks: number[];
  sequence: number;
  dtype: string | null;
  bytes: number;
  device: string | null;
  waited_ns?: number;
  per_rank: {
    rank: number;
    state: "waiting" | "never_entered" | "finished" | "entered_other" | "gone" | "late" | "no_trace";
    where: Frame | null;
    what: string | null;
    threads?: {
      name: string | null;
      tid: number | null;
      stack: Frame[];
    }[];
  }[];
}

// The rank that failed first, of several.
export interface FirstFailure {
  rank: number | null;
  step: number;
  time_ns: number;
  finding: string | null;
  where: Frame | null;
  what: string | null;
  last_operator?: Frame;
  missing?: number[];
  waiting: Collective | null;
}

// The rank that failed first in an attempt, after which the launcher started the ranks again.
export interface EarlierFailure {
  attempt: number;
  rank: number;
  step: number;
  where: Frame | null;
  what: string;
  last_operator?: Frame;
}

// What the process entered of collectives; absent where it entered none.
export interface Collectives {
  entered: number;
  last: {
    name: string;
    group: string | null;
    group_ranks: number[];
    group_size?: number;
    sequence: number;
    peer: number | null;
    bytes: number;
    dtype: string | null;
    device: string | null;
    state: "entered" | "issued" | "finished" | "failed";
    end_told: boolean;
    captured: boolean;
    where: Frame | null;
    step: number;
    entered_ns: number;
    wait_ns: number | null;
    finished_ns: number | null;
  }[];
}

// What devsan had to say about its own work.
export interface Notice {
  text: string;
  pid: number;
  rank: number | null;
  count: number;
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
  notices: Notice[];
  suppressions?: Suppression[];
  first_failure: FirstFailure | null;
  earlier_failures?: EarlierFailure[];
  processes: Process[];
}

// A part of a trace, or all of it, that could not be used.
export interface Damage {
  file: string;
  offset: number;
  bytes: number;
  reason: string;
}

// What `devsan view --json` writes. Fields may be added to this version; none is removed or changes its meaning.
export interface Report {
  schema: "devsan-report/1";
  run: Run;
  findings: Finding[];
  suppressed?: Finding[];
  damage: Damage[];
}

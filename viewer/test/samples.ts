// Small reports, as far as a test is about them.

import type { Finding, LineageStep, Operand, Process, Report } from "../src/model/report";

export function lineage(...devices: string[]): LineageStep[] {
  return devices
    .map((device, i): LineageStep => ({ file: "a.py", line: i + 1, function: "f", source: "x", op: "aten::to", how: "moved", device }))
    .reverse();
}

export function operand(): Operand {
  return { arg: "self", name: "x", text: null, device: "cpu", shape: [1], dtype: "float32", odd: true, is: "local", lineage: [] };
}

export function finding(part: Partial<Finding> = {}): Finding {
  return {
    id: "0", kind: "device-mismatch", severity: "error", raised: true, handled: false, message: null, op: "aten::add.Tensor",
    where: null, stack: [], forward: null, root_cause: null, alternatives: [], fix: null, step: 0, phase: "forward",
    rank: null, ranks: [], pid: 1, thread: 1, thread_name: null, count: 1, time: null,
    operands: [operand()],
    ...part,
  };
}

export function process(): Process {
  return {
    pid: 1, parent_pid: 0, rank: null, local_rank: null, world_size: null, node: null, attempt: null, run: null, host: null, command: null, trace: "", start: null, close: "exited", steps: 0, optimizer_steps: 0,
    operators: 0, lost_events: 0, info: {},
  };
}

export function report(findings: Finding[], suppressed: Finding[] = []): Report {
  return {
    schema: "devsan-report/1",
    run: {
      id: null, other_runs: 0, command: null, host: null, hosts: [], start: null, end: null, versions: {}, steps: 0,
      optimizer_steps: 0, notices: [], suppressions: [], first_failure: null, processes: [],
    },
    findings, suppressed, damage: [],
  };
}

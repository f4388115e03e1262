// Processes of a run: their names, and which of them a finding is of.

import type { First } from "./first";
import type { Finding, Process } from "./report";

export function processName(process: Process): string {
  const name = process.rank === null ? `pid ${process.pid}` : `rank ${process.rank}`;
  return (process.attempt ?? 0) > 0 ? `${name}, attempt ${process.attempt ?? 0}` : name;
}

// Processes of one rank, such as workers of its DataLoader, are told apart by their pids.
function toldApart(processes: Process[], nameOf: (process: Process) => string, withPid: (name: string, pid: number) => string): string[] {
  const counts = new Map<string, number>();
  for (const process of processes) counts.set(nameOf(process), (counts.get(nameOf(process)) ?? 0) + 1);
  return processes.map((process) => {
    const name = nameOf(process);
    return (counts.get(name) ?? 0) > 1 ? withPid(name, process.pid) : name;
  });
}

export function processNames(processes: Process[]): string[] {
  return toldApart(processes, processName, (name, pid) => `${name}, pid ${pid}`);
}

// The same for the margin of a chart: "128 #1" is rank 128 in attempt 1.
export function shortNames(processes: Process[]): string[] {
  const short = (process: Process) =>
    process.rank !== null && (process.attempt ?? 0) > 0 ? `${process.rank} #${process.attempt ?? 0}` : processName(process);
  return toldApart(processes, short, (name, pid) => `${name.replace("rank ", "")} · ${pid}`);
}

// How a process ended. One without a mark of its end was killed, or crashed, unless it still runs.
export function endText(process: Process): string {
  const { close, ended, ended_after: failed, rank } = process;
  if (close !== "open") return close;
  if (failed !== undefined && failed !== rank) return `ended after rank ${failed} had failed`;
  return ended ? "did not exit by itself: it was killed, or it crashed" : "killed, crashed, or still running";
}

function hadBegun(process: Process, time: string | null): boolean {
  return time === null || process.start === null || process.start <= time;
}

// Which process a finding is of, -1 for none. Other hosts and later attempts may have the same pid.
export function processOf(processes: Process[], finding: Pick<Finding, "pid" | "rank" | "time">): number {
  let found = -1;
  processes.forEach((process, i) => {
    const fits = process.pid === finding.pid && process.rank === finding.rank && hadBegun(process, finding.time);
    if (fits && (process.start ?? "") >= (processes[found]?.start ?? "")) found = i;
  });
  return found;
}

// Which process failed first, -1 for none. A finding that several ranks had names the process of one of them: of another
// rank it is the one that took the most steps, in the last attempt.
export function failedProcess(processes: Process[], first: First | null): number {
  if (first === null) return -1;
  if (first.finding?.rank === first.rank) return processOf(processes, first.finding);
  const order = (i: number) => [processes[i]?.attempt ?? 0, processes[i]?.steps ?? 0] as const;
  let found = -1;
  processes.forEach((process, i) => {
    if (process.rank !== first.rank || !hadBegun(process, first.time)) return;
    const [[attempt, steps], [lastAttempt, mostSteps]] = [order(i), order(found)];
    if (found < 0 || attempt > lastAttempt || (attempt === lastAttempt && steps > mostSteps)) found = i;
  });
  return found;
}

// When the first error of each process was, in seconds since the run began; null for one that had none. A finding that
// several processes had is one of them alone, but each process knows when its first was; of what only the comparison of
// ranks tells, no process knows.
export function failureTimes(processes: Process[], findings: Finding[], start: string | null): (number | null)[] {
  const began = start === null ? NaN : Date.parse(start);
  const times = processes.map((process) => (process.first_error_ns ?? NaN) / 1e6);
  for (const finding of findings) {
    if (finding.severity !== "error" || finding.time === null) continue;
    const i = processOf(processes, finding);
    const time = Date.parse(finding.time);
    if (i >= 0 && !((times[i] ?? NaN) <= time)) times[i] = time;
  }
  return times.map((time) => (Number.isNaN(time - began) ? null : (time - began) / 1000));
}

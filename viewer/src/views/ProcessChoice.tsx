import { processNames } from "../model/processes";
import type { Process } from "../model/report";

interface Properties {
  processes: Process[];
  has: (index: number) => boolean;
  chosen: number;
  choose: (index: number) => void;
}

// The process that failed, else the first one that has something to show; -1 for none.
export function startingProcess(processes: Process[], has: (index: number) => boolean, failed: number): number {
  return failed >= 0 && has(failed) ? failed : processes.findIndex((_, i) => has(i));
}

export function ProcessChoice({ processes, has, chosen, choose }: Properties) {
  const names = processNames(processes);
  return (
    <label class="choice">
      <span>Process</span>
      <select value={chosen} onChange={(event) => choose(Number(event.currentTarget.value))}>
        {processes.map((process, i) => has(i) && <option key={i} value={i}>{names[i]}{process.host === null ? "" : ` on ${process.host}`}</option>)}
      </select>
    </label>
  );
}

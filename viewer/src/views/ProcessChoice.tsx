import { processName } from "../model/memory";
import type { Process } from "../model/report";

interface Properties {
  processes: Process[];
  has: (index: number) => boolean;
  chosen: number;
  choose: (index: number) => void;
}

export function ProcessChoice({ processes, has, chosen, choose }: Properties) {
  return (
    <label class="choice">
      <span>Process</span>
      <select value={chosen} onChange={(event) => choose(Number(event.currentTarget.value))}>
        {processes.map((process, i) => has(i) && <option key={i} value={i}>{processName(process)}{process.host === null ? "" : ` on ${process.host}`}</option>)}
      </select>
    </label>
  );
}

// An operand's history as a path over devices: oldest first, steps that stay on one device together.

import type { LineageStep, Operand } from "./report";

export interface Stay {
  device: string;
  steps: LineageStep[]; // oldest first
}

export function pathOf(operand: Operand): Stay[] {
  const path: Stay[] = [];
  for (const step of [...operand.lineage].reverse()) {
    const device = step.device ?? "unknown";
    const last = path[path.length - 1];
    if (last?.device === device) last.steps.push(step);
    else path.push({ device, steps: [step] });
  }
  return path;
}

// "cpu → cuda:0 → cpu"
export function pathText(path: Stay[]): string {
  return path.map((stay) => stay.device).join(" → ");
}

// What failed first: as the ranks told each other, else the error with the earliest time.

import type { Collective, Finding, Frame, Report } from "./report";

export interface First {
  finding: Finding | null;
  rank: number | null;
  step: number;
  time: string | null;
  where: Frame | null;
  what: string | null;
  missing: number[]; // ranks that never entered what this one waited in, and failed for that, or that left no trace
  lastOperator: Frame | null; // of a rank that was killed or left
  waiting: Collective | null; // that other ranks were in meanwhile
  told: boolean; // by the run itself; else it is the earliest time that a trace has
}

function isFailure(finding: Finding): boolean {
  return finding.severity === "error" && !finding.handled;
}

export function firstFailure(report: Report): First | null {
  const told = report.run.first_failure;
  if (told) {
    const isNamed = (finding: Finding) => finding.id === told.finding;
    const named = report.findings.find(isNamed) ?? null;
    return {
      finding: named,
      rank: told.rank,
      step: told.step,
      time: told.time_ns > 0 ? new Date(told.time_ns / 1e6).toISOString() : null,
      where: told.where,
      what: told.what ?? null,
      missing: told.missing ?? [],
      lastOperator: told.last_operator ?? null,
      waiting: told.waiting ?? (named ?? report.suppressed.find(isNamed))?.collective ?? null,
      told: true,
    };
  }
  const failures = report.findings.filter(isFailure);
  failures.sort((a, b) => (a.time ?? "9").localeCompare(b.time ?? "9"));
  const finding = failures[0];
  if (!finding) return null;
  return { finding, rank: finding.rank, step: finding.step, time: finding.time, where: null, what: null, missing: [], lastOperator: null, waiting: null, told: false };
}

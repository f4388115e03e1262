// Which findings the list shows. What a finding is searched by is put together once.

import { parseRanks } from "./ranks";
import type { Finding, Report } from "./report";
import type { Filter } from "./route";

export interface Entry {
  key: string; // what addresses call it: its id, of which one of the suppressed may have the same
  finding: Finding;
  headline: string;
  suppressed: boolean;
  haystack: string;
  ranks: readonly number[];
  files: ReadonlySet<string>;
}

function filesOf(finding: Finding): Set<string> {
  const files = new Set<string>();
  if (finding.where) files.add(finding.where.file);
  if (finding.root_cause) files.add(finding.root_cause.file);
  if (finding.fix) files.add(finding.fix.file);
  for (const frame of finding.stack) if (!frame.torch) files.add(frame.file);
  return files;
}

function entry(finding: Finding, headline: string, suppressed: boolean): Entry {
  const files = filesOf(finding);
  const words = [finding.id, finding.kind, finding.op, finding.message, headline, finding.phase, ...files];
  for (const operand of finding.operands) words.push(operand.name, operand.text, operand.device);
  for (const frame of finding.stack) words.push(frame.function, frame.source);
  const ranks = finding.ranks.length > 0 || finding.rank === null ? finding.ranks : [finding.rank];
  return {
    key: suppressed ? `suppressed-${finding.id}` : finding.id,
    finding,
    headline,
    suppressed,
    haystack: words.filter(Boolean).join("\n").toLowerCase(),
    ranks,
    files,
  };
}

export function entriesOf(report: Report, headlines: Record<string, string>): Entry[] {
  const made = (suppressed: boolean) => (finding: Finding) =>
    entry(finding, headlines[finding.id] ?? finding.op ?? finding.kind, suppressed);
  return [...report.findings.map(made(false)), ...report.suppressed.map(made(true))];
}

export function filtered(entries: Entry[], filter: Filter): Entry[] {
  const words = filter.text.toLowerCase().split(/\s+/).filter(Boolean);
  const ranks = parseRanks(filter.rank);
  return entries.filter(
    (one) =>
      (filter.notes || one.finding.severity !== "note" || filter.kind === one.finding.kind) &&
      (filter.suppressed || !one.suppressed) &&
      (filter.kind === "" || one.finding.kind === filter.kind) &&
      (filter.file === "" || one.files.has(filter.file)) &&
      (ranks === null || ranks.some(([from, to]) => one.ranks.some((rank) => rank >= from && rank <= to))) &&
      words.every((word) => one.haystack.includes(word)),
  );
}

// What the choice "notes" shows; what is suppressed has a choice of its own.
export function countNotes(entries: Entry[]): number {
  return entries.filter((entry) => entry.finding.severity === "note" && !entry.suppressed).length;
}

export function countBy<T>(items: T[], keys: (item: T) => Iterable<string>): [string, number][] {
  const counts = new Map<string, number>();
  for (const item of items) for (const key of keys(item)) counts.set(key, (counts.get(key) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0]));
}

import { useMemo, useState } from "preact/hooks";
import { MemoryChart } from "../charts/MemoryChart";
import { RankChart, type Row } from "../charts/RankChart";
import { momentText, percentText, secondsText } from "../model/format";
import { curveName, curvesToDraw, type MemoryPart } from "../model/memory";
import { failureTimes, processNames, shortNames } from "../model/processes";
import type { Report } from "../model/report";
import {
  extentOf, moved, NO_STEPS, PHASES, summaryOf, waitSummaryOf, zoomed, type Phase, type Span, type Summary, type TimelinePart, type WaitSummary,
} from "../model/timeline";
import { ProcessChoice, startingProcess } from "./ProcessChoice";
import { Table, type Column } from "./Table";
import { usePart } from "./usePart";

const SAID: Record<Phase, string> = {
  forward: "forward",
  backward: "backward",
  optimizer: "optimizer",
  data: "waits for a DataLoader",
  rest: "rest of the step: logging, what comes between",
};

function rowsOf({ run, findings }: Report, part: TimelinePart | null): Row[] {
  const failures = failureTimes(run.processes, findings, run.start);
  const [names, margin] = [processNames(run.processes), shortNames(run.processes)];
  return run.processes.flatMap((_, index): Row[] => {
    const steps = part?.processes[index] ?? NO_STEPS;
    const waits = part?.waits[index] ?? null;
    if (steps === NO_STEPS && waits === null) return [];
    return [{ index, name: names[index] ?? "", shortName: margin[index] ?? "", steps, waits, failed: failures[index] ?? null }];
  });
}

function extentOfMemory(part: MemoryPart | null): Span {
  const times = (part?.processes ?? []).flat().flatMap((curve) => [curve.time[0] ?? 0, curve.time[curve.time.length - 1] ?? 0]);
  if (times.length === 0) return { from: 0, to: 1 };
  const [from, to] = times.reduce(([low, high], time) => [Math.min(low, time), Math.max(high, time)], [Infinity, 0]);
  return { from: from / 1000, to: Math.max(to, from + 1) / 1000 };
}

type RowSummary = Summary & { name: string; waits: WaitSummary };

const COLUMNS: Column<RowSummary>[] = [
  { title: "Process", cell: (row) => row.name },
  { title: "Steps", cell: (row) => (row.shown < row.taken ? `${row.taken}, ${row.shown} shown` : row.taken), number: true },
  { title: "Median", cell: (row) => secondsText(row.median), number: true },
  { title: "Longest", cell: (row) => `${secondsText(row.longest)}, step ${row.longestStep}`, number: true },
  ...PHASES.map((phase): Column<RowSummary> => ({
    title: phase, cell: (row) => (phase === "data" && !row.dataIsTold ? "" : percentText(row.shares[phase])), number: true,
  })),
  {
    title: "Longest wait in a collective",
    cell: ({ waits }) => (waits.count === 0 ? "" : `${secondsText(waits.longest)}, ${waits.name}`),
    number: true,
  },
];

function Legend() {
  return (
    <ul class="legend">
      {PHASES.map((phase) => <li key={phase}><span class={`swatch ${phase}`} aria-hidden="true" />{SAID[phase]}</li>)}
      <li><span class="swatch collective" aria-hidden="true" />waits in a collective (the last ones)</li>
      <li><span class="swatch failed" aria-hidden="true" />an error</li>
    </ul>
  );
}

function Zoom({ span, whole, set }: { span: Span; whole: Span; set: (span: Span) => void }) {
  const middle = (span.from + span.to) / 2;
  return (
    <div class="zoom" role="group" aria-label="Time that is shown">
      <button type="button" onClick={() => set(moved(span, whole, -0.5))} aria-label="Earlier">←</button>
      <button type="button" onClick={() => set(zoomed(span, whole, 0.5, middle))} aria-label="Zoom in">+</button>
      <button type="button" onClick={() => set(zoomed(span, whole, 2, middle))} aria-label="Zoom out">−</button>
      <button type="button" onClick={() => set(whole)}>All</button>
      <button type="button" onClick={() => set(moved(span, whole, 0.5))} aria-label="Later">→</button>
      <output>{momentText(span.from, (span.to - span.from) / 100)} to {momentText(span.to, (span.to - span.from) / 100)}</output>
    </div>
  );
}

function Ranks({ rows, texts, whole, span, setSpan, chosen, choose }: {
  rows: Row[]; texts: string[]; whole: Span; span: Span; setSpan: (span: Span) => void; chosen: number; choose: (index: number) => void;
}) {
  const summaries = useMemo(() => rows.map((row): RowSummary => ({
    ...summaryOf(row.steps), name: row.name, waits: waitSummaryOf(row.waits, texts),
  })), [rows, texts]);
  if (rows.length === 0) return <p>No process has recorded the times of steps: a step begins with the first forward operator after a backward.</p>;
  return (
    <>
      <Legend />
      <RankChart rows={rows} whole={whole} span={span} chosen={chosen} choose={choose} onZoom={setSpan} />
      <details>
        <summary>The steps in numbers</summary>
        <Table caption="Steps of each process" hideCaption columns={COLUMNS} rows={summaries} />
      </details>
    </>
  );
}

export function TimelineView({ report, failed }: { report: Report; failed: number }) {
  const timeline = usePart<TimelinePart>("timeline");
  const memory = usePart<MemoryPart>("memory");
  const part = timeline.state === "ready" ? timeline.data : null;
  const curves = memory.state === "ready" ? memory.data : null;
  const rows = useMemo(() => rowsOf(report, part), [report, part]);
  const whole = useMemo(() => (part && rows.length > 0 ? extentOf(part, rows.map((row) => row.failed)) : extentOfMemory(curves)), [part, curves, rows]);
  const [zoom, setSpan] = useState<Span | null>(null);
  const [picked, choose] = useState<number | null>(null);
  const has = (index: number) => (curves?.processes[index]?.length ?? 0) > 0 || part?.processes[index] != null;
  const chosen = picked ?? startingProcess(report.run.processes, has, failed);
  if (timeline.state === "loading" || memory.state === "loading") return <p class="panel">Reading…</p>;
  const shown = curvesToDraw(curves?.processes[chosen] ?? []);
  const span = zoom ?? whole;
  return (
    <section aria-labelledby="timeline-title" class="panel">
      <div class="bar">
        <h2 id="timeline-title">Steps and memory over time</h2>
        <Zoom span={span} whole={whole} set={setSpan} />
      </div>
      <Ranks rows={rows} texts={part?.texts ?? []} whole={whole} span={span} setSpan={setSpan} chosen={chosen} choose={choose} />
      {chosen >= 0 && (
        <div class="bar">
          <h3>Memory</h3>
          <ProcessChoice processes={report.run.processes} has={has} chosen={chosen} choose={choose} />
        </div>
      )}
      {shown.length === 0 && <p class="faint">This process has no curves of memory: they begin with the second step.</p>}
      {shown.map((curve) => <MemoryChart key={`${chosen} ${curveName(curve)}`} curve={curve} span={span} whole={whole} onZoom={setSpan} />)}
    </section>
  );
}

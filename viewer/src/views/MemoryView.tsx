import { useMemo } from "preact/hooks";
import { bytesText } from "../model/format";
import { curveName, processName, type Curve, type MemoryPart } from "../model/memory";
import type { Finding, Report } from "../model/report";
import { LiveMemoryView } from "./Kinds";
import { Table, type Column } from "./Table";
import { usePart } from "./usePart";

interface PeakRow {
  name: string;
  curve: Curve;
}

const MOST = 2000;

const PEAKS: Column<PeakRow>[] = [
  { title: "Process", cell: (row) => row.name },
  { title: "Device", cell: (row) => curveName(row.curve) },
  { title: "First", cell: (row) => bytesText(row.curve.used[0] ?? 0), number: true },
  { title: "Peak", cell: (row) => bytesText(row.curve.peak.used), number: true },
  { title: "At step", cell: (row) => row.curve.peak.step, number: true },
  { title: "Last", cell: (row) => bytesText(row.curve.used[row.curve.used.length - 1] ?? 0), number: true },
  { title: "Held at last", cell: (row) => bytesText(row.curve.held[row.curve.held.length - 1] ?? 0), number: true },
];

function Full({ finding }: { finding: Finding }) {
  if (!finding.live_memory) return null;
  return (
    <section class="panel">
      <h3>When {finding.live_memory.device ?? "the device"} was full <span class="faint">step {finding.step}</span></h3>
      <LiveMemoryView live={finding.live_memory} />
    </section>
  );
}

export function MemoryView({ report }: { report: Report }) {
  const memory = usePart<MemoryPart>("memory");
  const data = memory.state === "ready" ? memory.data : null;
  const rows = useMemo(
    () =>
      report.run.processes
        .flatMap((process, i) => (data?.processes[i] ?? []).map((curve): PeakRow => ({ name: processName(process), curve })))
        .sort((a, b) => b.curve.peak.used - a.curve.peak.used),
    [report, data],
  );
  const full = report.findings.filter((finding) => finding.live_memory);
  return (
    <section aria-labelledby="memory-title">
      <div class="panel">
        <h2 id="memory-title">Memory</h2>
        {memory.state === "ready" && rows.length === 0 && <p>No process has curves of memory: they begin with the second step.</p>}
        {rows.length > 0 && <Table caption="Curves by their peak; the timeline draws them" columns={PEAKS} rows={rows.slice(0, MOST)} />}
      </div>
      {full.map((finding) => <Full key={finding.id} finding={finding} />)}
    </section>
  );
}

import { useMemo, useState } from "preact/hooks";
import { bytesText } from "../model/format";
import { curveName, liveSites, processName, type Curve, type LiveSite, type MemoryPart } from "../model/memory";
import type { Finding, Report } from "../model/report";
import { Device } from "./Device";
import { LiveMemoryView, Share } from "./Kinds";
import { Place } from "./Place";
import { ProcessChoice } from "./ProcessChoice";
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

function siteColumns(largest: number): Column<LiveSite>[] {
  return [
    { title: "Bytes", cell: (site) => bytesText(site.bytes), number: true },
    { title: "Share", cell: (site) => <Share bytes={site.bytes} of={largest} /> },
    { title: "Tensors", cell: (site) => site.tensors.toLocaleString("en"), number: true },
    { title: "Device", cell: (site) => <Device name={site.device === "" ? "host" : site.device} /> },
    { title: "Line", cell: (site) => <Place place={site} /> },
    { title: "Made by", cell: (site) => <code>{site.op}</code> },
  ];
}

function AtPeak({ report, data }: { report: Report; data: MemoryPart }) {
  const has = (index: number) => (data.sites[index]?.length ?? 0) > 0;
  const [picked, choose] = useState<number | null>(null);
  const chosen = picked ?? report.run.processes.findIndex((_, i) => has(i));
  if (chosen < 0) return null;
  const sites = liveSites(data, chosen);
  return (
    <section class="panel" aria-labelledby="lines-title">
      <div class="bar">
        <h3 id="lines-title">Live memory by line, at the peak of each device</h3>
        <ProcessChoice processes={report.run.processes} has={has} chosen={chosen} choose={choose} />
      </div>
      <Table caption="Lines whose tensors keep most" hideCaption columns={siteColumns(sites[0]?.bytes ?? 1)} rows={sites} />
      <p class="faint">Of the lines that censuses saw keep most; small ones are not recorded.</p>
    </section>
  );
}

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
      {data && <AtPeak report={report} data={data} />}
      {full.map((finding) => <Full key={finding.id} finding={finding} />)}
    </section>
  );
}

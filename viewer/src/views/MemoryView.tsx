import { useMemo, useState } from "preact/hooks";
import { bytesText, percentText, sentence } from "../model/format";
import { curveName, peakPlaces, peakText, unlisted, type Curve, type MemoryPart, type Peak, type PeakPlace } from "../model/memory";
import { processNames } from "../model/processes";
import type { Beside, Finding, Report } from "../model/report";
import { Device } from "./Device";
import { LiveMemoryView, Share } from "./Kinds";
import { Place } from "./Place";
import { ProcessChoice, startingProcess } from "./ProcessChoice";
import { Prose } from "./Prose";
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

function placeColumns(largest: number): Column<PeakPlace>[] {
  return [
    { title: "Bytes", cell: (place) => bytesText(place.bytes), number: true },
    { title: "Share", cell: (place) => <Share bytes={place.bytes} of={largest} /> },
    { title: "Tensors", cell: (place) => place.tensors.toLocaleString("en"), number: true },
    { title: "Kind", cell: (place) => <Kind name={place.kind} /> },
    { title: "Line", cell: (place) => <Place place={place} /> },
    { title: "Made by", cell: (place) => <code>{place.op}</code> },
  ];
}

type KindRow = Peak["by_kind"][number];

function kindColumns(all: number): Column<KindRow>[] {
  return [
    { title: "Kind", cell: (row) => <Kind name={row.kind} /> },
    { title: "Bytes", cell: (row) => bytesText(row.bytes), number: true },
    { title: "Of all", cell: (row) => percentText(row.bytes / Math.max(all, 1)), number: true },
    { title: "Tensors", cell: (row) => row.tensors.toLocaleString("en"), number: true },
  ];
}

const colorOf = (kind: string) => `kind-${kind.replaceAll(" ", "-")}`;

function Kind({ name }: { name: string }) {
  return <span class="kind-name"><span class={`swatch ${colorOf(name)}`} aria-hidden="true" />{name}</span>;
}

// The table beneath it has the same numbers.
function KindBar({ rows, all }: { rows: KindRow[]; all: number }) {
  return (
    <div class="kind-bar" aria-hidden="true">
      {rows.map((row) => <span key={row.kind} class={colorOf(row.kind)} style={{ width: `${(row.bytes / Math.max(all, 1)) * 100}%` }} />)}
    </div>
  );
}

function PeakOf({ peak, texts }: { peak: Peak; texts: string[] }) {
  const device = peak.device ?? "host";
  const places = peakPlaces(texts, peak);
  const rest = unlisted(peak);
  return (
    <section class="peak" aria-label={`Live memory of ${device} at its peak`}>
      <h4><Device name={device} /></h4>
      <p>{peakText(peak)}</p>
      <KindBar rows={peak.by_kind} all={peak.listed} />
      <Table caption={`Live memory of ${device} by kind`} columns={kindColumns(peak.listed)} rows={peak.by_kind} />
      <Table caption={`Live memory of ${device} by line`} columns={placeColumns(places[0]?.bytes ?? 1)} rows={places} />
      {rest > 0 && <p class="faint">{bytesText(rest)} more is in no tensor that an operator was seen to make.</p>}
    </section>
  );
}

function AtPeak({ report, data, failed }: { report: Report; data: MemoryPart; failed: number }) {
  const has = (index: number) => (data.peaks[index]?.length ?? 0) > 0;
  const [picked, choose] = useState<number | null>(null);
  const chosen = picked ?? startingProcess(report.run.processes, has, failed);
  if (chosen < 0) return null;
  const peaks = [...(data.peaks[chosen] ?? [])].sort((a, b) => Number(a.device === null) - Number(b.device === null));
  return (
    <section class="panel" aria-labelledby="peak-title">
      <div class="bar">
        <h3 id="peak-title">What was live when most was in use</h3>
        <ProcessChoice processes={report.run.processes} has={has} chosen={chosen} choose={choose} />
      </div>
      {peaks.map((peak) => <PeakOf key={peak.device} peak={peak} texts={data.texts} />)}
    </section>
  );
}

function Full({ finding, beside }: { finding: Finding; beside: Beside }) {
  if (!finding.live_memory) return null;
  return (
    <section class="panel">
      <h3>When {finding.live_memory.device ?? "the device"} was full <span class="faint">step {finding.step}</span></h3>
      <p><Prose text={sentence(beside.headlines[finding.id] ?? "")} /></p>
      <LiveMemoryView live={finding.live_memory} room={beside.sentences[finding.id]?.room} />
    </section>
  );
}

export function MemoryView({ report, beside, failed }: { report: Report; beside: Beside; failed: number }) {
  const memory = usePart<MemoryPart>("memory");
  const data = memory.state === "ready" ? memory.data : null;
  const rows = useMemo(
    () =>
      processNames(report.run.processes)
        .flatMap((name, i) => (data?.processes[i] ?? []).map((curve): PeakRow => ({ name, curve })))
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
      {data && <AtPeak report={report} data={data} failed={failed} />}
      {full.map((finding) => <Full key={finding.id} finding={finding} beside={beside} />)}
    </section>
  );
}

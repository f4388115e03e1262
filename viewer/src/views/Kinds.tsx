// What findings of one kind have beside the others.

import { bytesText, placeText } from "../model/format";
import type { Collective, CollectiveRank, Ending, Finding, Growth, GrowthPart, LiveMemory, LiveRow } from "../model/report";
import { Place } from "./Place";
import { Stack } from "./Stack";
import { Table, type Column } from "./Table";

const SHOWN = 40;

function EndingPart({ ending }: { ending: Ending }) {
  const how = ending.signal ?? (ending.status === null ? "unknown" : `status ${ending.status}`);
  return (
    <p>
      Ended by <strong>{how}</strong>.
      {ending.named_by_kernel && " The kernel's log says that it killed this process for memory."}
      {(ending.oom_kills ?? 0) > 0 && ` The kernel killed ${ending.oom_kills ?? 0} of the run's processes for memory.`}
      {ending.hint && ` ${ending.hint}`}
    </p>
  );
}

const GROWTH: Column<GrowthPart>[] = [
  { title: "A step", cell: (part) => bytesText(part.bytes_per_step), number: true },
  { title: "At last", cell: (part) => bytesText(part.bytes), number: true },
  { title: "Tensors of", cell: (part) => <code>{part.op}</code> },
  { title: "Line", cell: (part) => <span title={part.file}>{placeText(part)}</span> },
];

function GrowthPartView({ growth }: { growth: Growth }) {
  return (
    <>
      <p>
        {growth.device ?? "The host"} has gained {bytesText(growth.bytes_per_step)} with every step since step {growth.since}
        {growth.holder !== null && <>, kept by <code>{growth.holder}</code></>}
        {growth.graph && " with its autograd graphs"}.
        {growth.steps_left !== null && ` At this rate it is full in ${growth.steps_left.toLocaleString("en")} more steps.`}
      </p>
      {growth.parts.length > 0 && <Table caption="What grows" columns={GROWTH} rows={growth.parts} />}
    </>
  );
}

// Draws the number that stands beside it.
export function Share({ bytes, of }: { bytes: number; of: number }) {
  const percent = Math.min(100, (bytes / Math.max(of, 1)) * 100);
  return <span class="share" aria-hidden="true"><span style={{ width: `${percent}%` }} /></span>;
}

function liveColumns(total: number, title: string, name: (row: LiveRow) => string): Column<LiveRow>[] {
  return [
    { title: "Bytes", cell: (row) => bytesText(row.bytes), number: true },
    { title: "Share", cell: (row) => <Share bytes={row.bytes} of={total} /> },
    { title: "Tensors", cell: (row) => row.tensors.toLocaleString("en"), number: true },
    { title, cell: name },
  ];
}

export function LiveMemoryView({ live }: { live: LiveMemory }) {
  const total = live.allocated || live.listed;
  const place = (row: LiveRow) =>
    [row.op, row.file !== undefined && row.file !== "" ? placeText({ file: row.file, line: row.line ?? 0 }) : "", row.kind]
      .filter(Boolean)
      .join(" · ");
  return (
    <>
      <p>
        {live.device ?? "The device"} {live.asked !== null && `was asked for ${bytesText(live.asked)}; it `}
        had {bytesText(live.allocated)} in tensors
        {live.capacity !== null && ` of ${bytesText(live.capacity)}`}
        {live.free !== null && `, and ${bytesText(live.free)} free`}.
      </p>
      <Table caption="Live memory by kind" columns={liveColumns(total, "Kind", (row) => row.kind ?? "")} rows={live.by_kind} />
      {live.by_module.length > 0 && (
        <Table caption="By module" columns={liveColumns(total, "Module", (row) => row.module ?? "")} rows={live.by_module.slice(0, SHOWN)} />
      )}
      <Table caption="By line" columns={liveColumns(total, "Operator and line", place)} rows={live.by_place.slice(0, SHOWN)} />
    </>
  );
}

const STATES: Record<string, string> = {
  waiting: "waits in it",
  never_entered: "never entered it",
  finished: "finished it",
  entered_other: "entered another",
  gone: "is gone",
  late: "came late",
};

const RANKS: Column<CollectiveRank>[] = [
  { title: "Rank", cell: (one) => one.rank, number: true },
  { title: "State", cell: (one) => <span class={`state ${one.state}`}>{STATES[one.state] ?? one.state}</span> },
  { title: "Where", cell: (one) => (one.where ? <Place place={one.where} /> : ""), wide: true },
  { title: "What", cell: (one) => one.what ?? "", wide: true },
];

function Threads({ of: { rank, threads } }: { of: CollectiveRank }) {
  return (
    <>
      {threads?.map(({ name, tid, stack }, i) => (
        <Stack key={i} title={`Rank ${rank}, ${name ?? (tid === null ? "a thread" : `thread ${tid}`)}`} frames={stack} />
      ))}
    </>
  );
}

export function CollectivePart({ collective }: { collective: Collective }) {
  const about = [
    collective.sequence === null ? null : `number ${collective.sequence}`,
    collective.group,
    collective.dtype,
    collective.bytes === null ? null : bytesText(collective.bytes),
    collective.device,
  ];
  return (
    <>
      <p><code>{collective.name}</code> <span class="faint">{about.filter(Boolean).join(" · ")}</span></p>
      <Table caption="Where each rank was" columns={RANKS} rows={collective.per_rank} />
      {collective.per_rank.map((one) => <Threads key={one.rank} of={one} />)}
    </>
  );
}

const DIFFERS: Column<{ what: string; here: string; there: string }>[] = [
  { title: "What differs", cell: (one) => one.what },
  { title: "On these ranks", cell: (one) => one.here },
  { title: "On the others", cell: (one) => one.there },
];

function Rules({ finding }: { finding: Finding }) {
  const { expectation, writers } = finding;
  return (
    <>
      {expectation && (
        <p>Expected {expectation.expected}, found {expectation.found}, by the rule <code>{expectation.rule}</code>.</p>
      )}
      {writers && writers.length > 0 && (
        <ol class="writers">
          {writers.map((writer, i) => <li key={i}><Place place={writer.frame} /> <span class="faint">{writer.when}</span></li>)}
        </ol>
      )}
    </>
  );
}

export function Particulars({ finding }: { finding: Finding }) {
  const { ending, growth, live_memory: live, collective, differs } = finding;
  return (
    <>
      {ending && <EndingPart ending={ending} />}
      {growth && <GrowthPartView growth={growth} />}
      {live && <LiveMemoryView live={live} />}
      {collective && <CollectivePart collective={collective} />}
      {differs && differs.length > 0 && <Table caption="What differs between ranks" columns={DIFFERS} rows={differs} />}
      <Rules finding={finding} />
    </>
  );
}

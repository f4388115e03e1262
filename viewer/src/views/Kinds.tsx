// What findings of one kind have beside the others.

import { bytesText, placeText } from "../model/format";
import type { Collective, CollectiveRank, Finding, Growth, GrowthPart, LiveMemory, LiveRow, Sentences, Writer } from "../model/report";
import { Fold } from "./Fold";
import { Place } from "./Place";
import { Prose } from "./Prose";
import { Snippet } from "./Snippet";
import { Stack } from "./Stack";
import { Table, type Column } from "./Table";

const SHOWN = 40;

// Of tensors that no line of Python made, no line is known.
function lineText({ file, line }: Pick<LiveRow, "file" | "line">): string {
  return file ? placeText({ file, line: line ?? 0 }) : "";
}

const STEP_OF: Record<Growth["clock"], string> = { iterations: "A step", rounds: "A round", "shared-tensors": "Each" };

const growthColumns = (clock: Growth["clock"]): Column<GrowthPart>[] => [
  { title: STEP_OF[clock], cell: (part) => bytesText(part.bytes_per_step), number: true },
  { title: "At last", cell: (part) => bytesText(part.bytes), number: true },
  { title: "Tensors of", cell: (part) => <code>{part.op}</code> },
  { title: "Line", cell: (part) => <span title={part.file ?? ""}>{lineText(part)}</span> },
];

function GrowthPartView({ growth, said }: { growth: Growth; said: Sentences }) {
  return (
    <>
      <p>{said.what_grows !== undefined && <><Prose text={said.what_grows} />. </>}{said.outlook}</p>
      {growth.parts.length > 0 && <Table caption="What grows" columns={growthColumns(growth.clock)} rows={growth.parts} />}
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

export function LiveMemoryView({ live, room }: { live: LiveMemory; room: string | undefined }) {
  const total = live.allocated || live.listed;
  const place = (row: LiveRow) =>
    [row.op, lineText(row), row.kind].filter(Boolean).join(" · ");
  return (
    <>
      {room !== undefined && <p>{room}</p>}
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
  no_trace: "left no trace here",
};

const RANKS: Column<CollectiveRank>[] = [
  { title: "Rank", cell: (one) => one.rank, number: true },
  { title: "State", cell: (one) => <span class={`state ${one.state}`}>{STATES[one.state] ?? one.state}</span> },
  { title: "Where", cell: (one) => (one.where ? <Place place={one.where} /> : ""), wide: true },
  { title: "What", cell: (one) => one.what ?? "", wide: true },
];

function Threads({ of: { rank, threads = [] } }: { of: CollectiveRank }) {
  const stacks = () => threads.map(({ name, tid, stack }, i) => (
    <Stack key={i} title={`Rank ${rank}, ${name ?? (tid === null ? "a thread" : `thread ${tid}`)}`} frames={stack} />
  ));
  if (threads.length < 2) return <>{stacks()}</>;
  return <Fold class="stack" summary={`Rank ${rank}, stacks of ${threads.length} threads`}>{stacks}</Fold>;
}

export function CollectivePart({ collective }: { collective: Collective }) {
  const about = [
    `number ${collective.sequence}`,
    collective.group,
    collective.dtype,
    collective.bytes > 0 ? bytesText(collective.bytes) : null,
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

const WRITERS: Column<Writer>[] = [
  { title: "Written", cell: (one) => one.when },
  { title: "Value", cell: (one) => <code>{one.value}</code> },
  { title: "Line", cell: (one) => <Place place={one} /> },
  { title: "Source", cell: (one) => <Snippet text={one.source} />, wide: true },
];

function Rules({ finding }: { finding: Finding }) {
  const { expectation, writers } = finding;
  return (
    <>
      {expectation && (
        <p>Expected {expectation.expected}, found {expectation.found}, by the rule <code>{expectation.rule}</code>.</p>
      )}
      {writers && writers.length > 0 && (
        <Table caption={`Who wrote ${finding.attribute ?? "it"}`} columns={WRITERS} rows={writers} />
      )}
    </>
  );
}

export function Particulars({ finding, said }: { finding: Finding; said: Sentences }) {
  const { ending, growth, live_memory: live, collective, differs } = finding;
  return (
    <>
      {ending?.hint && <p>{ending.hint}</p>}
      {growth && <GrowthPartView growth={growth} said={said} />}
      {live && <LiveMemoryView live={live} room={said.room} />}
      {collective && <CollectivePart collective={collective} />}
      {differs && differs.length > 0 && <Table caption="What differs between ranks" columns={DIFFERS} rows={differs} />}
      <Rules finding={finding} />
    </>
  );
}

import { bytesText, clockText } from "../model/format";
import { endText } from "../model/processes";
import type { Damage, EarlierFailure, Process, Report, Run } from "../model/report";
import { Place } from "./Place";
import { Table, type Column } from "./Table";

const MOST = 1000;

const RANK: Column<Process> = { title: "Rank", cell: (one) => one.rank ?? "", number: true };
const ATTEMPT: Column<Process> = { title: "Attempt", cell: (one) => one.attempt ?? "", number: true };
const PROCESSES: Column<Process>[] = [
  { title: "Pid", cell: (one) => one.pid, number: true },
  { title: "Host", cell: (one) => one.host },
  { title: "Ended", cell: (one) => <span class={`state ${one.close}`}>{endText(one)}</span> },
  { title: "Steps", cell: (one) => one.steps, number: true },
  { title: "Operators", cell: (one) => one.operators.toLocaleString("en"), number: true },
  { title: "Not recorded", cell: (one) => (one.lost_events === 0 ? "" : one.lost_events.toLocaleString("en")), number: true },
  { title: "Trace", cell: (one) => <code>{one.trace}</code> },
];

const DAMAGE: Column<Damage>[] = [
  { title: "File", cell: (one) => <code>{one.file}</code> },
  { title: "At byte", cell: (one) => one.offset.toLocaleString("en"), number: true },
  { title: "Lost", cell: (one) => (one.bytes === 0 ? "unknown" : bytesText(one.bytes)), number: true },
  { title: "Why", cell: (one) => one.reason },
];

const EARLIER: Column<EarlierFailure>[] = [
  { title: "Attempt", cell: (one) => one.attempt, number: true },
  { title: "Rank", cell: (one) => one.rank, number: true },
  { title: "Step", cell: (one) => one.step, number: true },
  { title: "What failed first", cell: (one) => `It ${one.what}` },
  { title: "Line of the program", cell: (one) => (one.where ? <Place place={one.where} /> : "") },
];

const SUPPRESSIONS: Column<Run["suppressions"][number]>[] = [
  { title: "Line", cell: (one) => <code>{one.file}:{one.line}</code> },
  { title: "Entry", cell: (one) => <code>{one.text}</code> },
  { title: "Reason", cell: (one) => one.reason ?? "" },
  { title: "Applied", cell: (one) => (one.count === 0 ? "never" : one.count), number: true },
];

const NOTICES: Column<Run["notices"][number]>[] = [
  { title: "Rank", cell: (one) => one.rank ?? "", number: true },
  { title: "devsan said", cell: (one) => one.text },
  { title: "Processes", cell: (one) => one.count, number: true },
];

function Facts({ run }: { run: Run }) {
  const facts: [string, string][] = [
    ["Command", run.command ?? "unknown"],
    ["Run", run.id ?? "unknown"],
    ["Hosts", run.hosts.join(", ")],
    ["Began", clockText(run.start)],
    ["Ended", clockText(run.end)],
    ["Steps", `${run.steps}, ${run.optimizer_steps} with an optimizer`],
    ...Object.entries(run.versions),
  ];
  return (
    <dl class="facts">
      {facts.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}
      {run.other_runs > 0 && <div><dt>Other runs</dt><dd>{run.other_runs} in the same directory; they are not shown</dd></div>}
    </dl>
  );
}

export function RunView({ report }: { report: Report }) {
  const { run } = report;
  const more = run.processes.length - MOST;
  const again = run.processes.some((one) => (one.attempt ?? 0) > 0);
  return (
    <section aria-labelledby="run-title" class="panel">
      <h2 id="run-title">The run</h2>
      <Facts run={run} />
      <h3>Damage</h3>
      {report.damage.length === 0 ? <p>All traces were read whole.</p> : <Table caption="What could not be read" columns={DAMAGE} rows={report.damage} />}
      {run.earlier_failures && <Table caption="Attempts before the last one" columns={EARLIER} rows={run.earlier_failures} />}
      {run.suppressions.length > 0 && <Table caption="Suppressions" columns={SUPPRESSIONS} rows={run.suppressions} />}
      {run.notices.length > 0 && <Table caption="What devsan said about its own work" columns={NOTICES} rows={run.notices} />}
      <Table caption="Processes" columns={[RANK, ...(again ? [ATTEMPT] : []), ...PROCESSES]} rows={run.processes.slice(0, MOST)} />
      {more > 0 && <p class="faint">And {more} more.</p>}
    </section>
  );
}

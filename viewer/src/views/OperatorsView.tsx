import { useState } from "preact/hooks";
import { shortPath } from "../model/format";
import { lastOperators, type LastOperator, type OperatorsPart, type PackedThread } from "../model/operators";
import type { Report } from "../model/report";
import { ProcessChoice, startingProcess } from "./ProcessChoice";
import { Table, type Column } from "./Table";
import { usePart } from "./usePart";

const COLUMNS: Column<LastOperator>[] = [
  { title: "Step", cell: (one) => one.step, number: true },
  { title: "Operator", cell: (one) => <code>{one.op}</code> },
  { title: "Line", cell: (one) => one.file !== "" && <span title={one.file}>{shortPath(one.file)}:{one.line}</span> },
  { title: "Function", cell: (one) => one.function },
];

function ThreadView({ part, thread }: { part: OperatorsPart; thread: PackedThread }) {
  const name = `${thread.name === "" ? "thread" : thread.name} ${thread.tid}`;
  return (
    <section class="panel">
      <h3>{name} <span class="faint">{thread.operators.toLocaleString("en")} operators in all</span></h3>
      <Table caption={`Last operators of ${name}, newest first`} hideCaption columns={COLUMNS} rows={lastOperators(part, thread)} />
      {thread.more > 0 && <p class="faint">The page leaves out {thread.more} earlier ones, since the run has many threads.</p>}
    </section>
  );
}

export function OperatorsView({ report, failed }: { report: Report; failed: number }) {
  const loaded = usePart<OperatorsPart>("operators");
  const { processes } = report.run;
  const has = (index: number) => loaded.state === "ready" && (loaded.data?.processes[index]?.length ?? 0) > 0;
  const [picked, choose] = useState<number | null>(null);
  if (loaded.state !== "ready") return <p class="panel">Reading…</p>;
  const chosen = picked ?? startingProcess(processes, has, failed);
  const threads = loaded.data?.processes[chosen] ?? [];
  return (
    <section aria-labelledby="operators-title">
      <div class="panel bar">
        <h2 id="operators-title">Last operators of each thread</h2>
        {chosen >= 0 && <ProcessChoice processes={processes} has={has} chosen={chosen} choose={choose} />}
      </div>
      {threads.length === 0 && <p class="panel">No process has recorded operators.</p>}
      {loaded.data && threads.map((thread) => <ThreadView key={thread.tid} part={loaded.data as OperatorsPart} thread={thread} />)}
    </section>
  );
}

import { useMemo } from "preact/hooks";
import { counted, placeText, ranksText } from "../model/format";
import { countNotes, type Entry } from "../model/filter";
import type { First } from "../model/first";
import type { Beside, Report } from "../model/report";
import type { Filter } from "../model/route";
import { Boundary } from "./Boundary";
import { Filters } from "./Filters";
import { FindingList } from "./FindingList";
import { FindingView } from "./FindingView";
import { FirstFailure } from "./First";
import { Table, type Column } from "./Table";
import { focusFinding } from "./useFindingFocus";
import { usePrinting } from "./usePrinting";

interface Properties {
  entries: Entry[];
  shown: Entry[];
  chosen: Entry | null;
  unknown: boolean; // the address names another, which the report lacks
  first: First | null;
  report: Report;
  beside: Beside;
  filter: Filter;
  changeFilter: (filter: Filter) => void;
  link: (key: string) => string;
}

const PRINTED: Column<Entry>[] = [
  { title: "Kind", cell: (one) => one.finding.kind },
  { title: "What", cell: (one) => one.headline },
  { title: "Line", cell: ({ finding }) => (finding.where ? placeText(finding.where) : "") },
  { title: "Ranks", cell: (one) => ranksText(one.finding.ranks) },
  { title: "Step", cell: (one) => one.finding.step, number: true },
];

const MOST_PRINTED = 500;

// Notes and what is suppressed are left out from the start.
function textOfNone(entries: Entry[], filter: Filter): string {
  const narrowed = filter.text !== "" || filter.kind !== "" || filter.rank !== "" || filter.file !== "";
  if (narrowed) return "No finding matches the filter.";
  const notes = countNotes(entries);
  const left = notes > 0 && !filter.notes ? ` ${counted(notes, "note")} ${notes === 1 ? "is" : "are"} not shown.` : "";
  return `No error and no warning.${left}`;
}

export function Findings({ entries, shown, chosen, unknown, first, report, beside, filter, changeFilter, link }: Properties) {
  const printing = usePrinting();
  const firstEntry = entries.find((entry) => entry.finding === first?.finding) ?? null;
  const several = useMemo(() => new Set(report.run.processes.flatMap(({ rank }) => rank ?? [])).size > 1, [report]);
  const href = firstEntry && firstEntry !== chosen ? link(firstEntry.key) : null;
  // What does not change with the filter is not made anew with each letter of it.
  const top = useMemo(
    () => first && <FirstFailure first={first} entry={firstEntry} several={several} href={href} />,
    [first, firstEntry, several, href],
  );
  const view = useMemo(
    () => chosen && <Boundary key={chosen.key} what="This finding"><FindingView entry={chosen} beside={beside} /></Boundary>,
    [chosen, beside],
  );
  return (
    <>
      {top}
      {unknown && <p class="notice" role="status">The finding that this link names is not in this report.</p>}
      {entries.length === 0 && <p class="panel">devsan found nothing in this run.</p>}
      <div class="columns">
        <div class="side">
          <Filters entries={entries} shown={shown.length} filter={filter} change={changeFilter} />
          <FindingList entries={shown} chosen={chosen?.key ?? null} none={textOfNone(entries, filter)} link={link} chooseAgain={focusFinding} />
        </div>
        {view}
      </div>
      {/* The list scrolls, and so has no end on paper. */}
      {printing && <Table caption="All findings that the filter shows" columns={PRINTED} rows={shown.slice(0, MOST_PRINTED)} />}
    </>
  );
}

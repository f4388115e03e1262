import { useEffect, useState } from "preact/hooks";
import { counted, placeText, ranksText } from "../model/format";
import { countNotes, type Entry } from "../model/filter";
import type { First } from "../model/first";
import type { Beside, Report } from "../model/report";
import type { Filter } from "../model/route";
import { Filters } from "./Filters";
import { FindingList } from "./FindingList";
import { FindingView } from "./FindingView";
import { FirstFailure } from "./First";
import { Table, type Column } from "./Table";

interface Properties {
  entries: Entry[];
  shown: Entry[];
  chosen: Entry | null;
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

// The list scrolls and so has no end on paper: there, a table takes its place.
function usePrinting(): boolean {
  const [printing, set] = useState(false);
  useEffect(() => {
    const query = matchMedia("print");
    const onChange = () => set(query.matches);
    query.addEventListener("change", onChange);
    return () => query.removeEventListener("change", onChange);
  }, []);
  return printing;
}

// Notes and what is suppressed are left out from the start.
function textOfNone(entries: Entry[], filter: Filter): string {
  const narrowed = filter.text !== "" || filter.kind !== "" || filter.rank !== "" || filter.file !== "";
  if (narrowed) return "No finding matches the filter.";
  const notes = countNotes(entries);
  const left = notes > 0 && !filter.notes ? ` ${counted(notes, "note")} ${notes === 1 ? "is" : "are"} not shown.` : "";
  return `No error and no warning.${left}`;
}

export function Findings({ entries, shown, chosen, first, report, beside, filter, changeFilter, link }: Properties) {
  const printing = usePrinting();
  const firstEntry = entries.find((entry) => entry.finding === first?.finding) ?? null;
  const several = report.run.processes.filter(({ rank }) => rank !== null).length > 1;
  return (
    <>
      {first && (
        <FirstFailure
          first={first} entry={firstEntry} several={several}
          href={firstEntry && firstEntry !== chosen ? link(firstEntry.key) : null}
        />
      )}
      {entries.length === 0 && <p class="panel">devsan found nothing in this run.</p>}
      <div class="columns">
        <div class="side">
          <Filters entries={entries} shown={shown.length} filter={filter} change={changeFilter} />
          <FindingList entries={shown} chosen={chosen?.key ?? null} none={textOfNone(entries, filter)} link={link} />
        </div>
        {chosen && <FindingView key={chosen.key} entry={chosen} beside={beside} />}
      </div>
      {printing && <Table caption="All findings that the filter shows" columns={PRINTED} rows={shown.slice(0, MOST_PRINTED)} />}
    </>
  );
}

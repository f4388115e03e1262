import { useMemo } from "preact/hooks";
import { counted, shortPath } from "../model/format";
import { countBy, countNotes, type Entry } from "../model/filter";
import { NO_FILTER, type Filter } from "../model/route";

const MOST_FILES = 200;

interface Properties {
  entries: Entry[];
  shown: number;
  filter: Filter;
  change: (filter: Filter) => void;
}

type Choices = [string, number][];

interface ChoiceProperties {
  label: string;
  value: string;
  choices: Choices;
  text?: (value: string) => string;
  choose: (value: string) => void;
}

function Choice({ label, value, choices, text = (word) => word, choose }: ChoiceProperties) {
  return (
    <label>
      <span>{label}</span>
      <select value={value} onChange={(event) => choose(event.currentTarget.value)}>
        <option value="">all</option>
        {value !== "" && !choices.some(([choice]) => choice === value) && <option value={value}>{text(value)}</option>}
        {choices.map(([choice, count]) => <option key={choice} value={choice} title={choice}>{text(choice)} ({count})</option>)}
      </select>
    </label>
  );
}

function Tick({ label, on, change }: { label: string; on: boolean; change: (on: boolean) => void }) {
  return (
    <label class="tick">
      <input type="checkbox" checked={on} onChange={(event) => change(event.currentTarget.checked)} /> {label}
    </label>
  );
}

export function Filters({ entries, shown, filter, change }: Properties) {
  const kinds = useMemo(() => countBy(entries, (entry) => [entry.finding.kind]), [entries]);
  const files = useMemo(() => countBy(entries, (entry) => entry.files).slice(0, MOST_FILES), [entries]);
  const notes = countNotes(entries);
  const suppressed = entries.filter((entry) => entry.suppressed).length;
  const set = (part: Partial<Filter>) => change({ ...filter, ...part });
  return (
    <search class="filters">
      <label class="wide">
        <span>Search</span>
        <input
          type="search" id="search" value={filter.text} placeholder="operator, name, file, message"
          onInput={(event) => set({ text: event.currentTarget.value })}
        />
      </label>
      <Choice label="Kind" value={filter.kind} choices={kinds} choose={(kind) => set({ kind })} />
      <label>
        <span>Ranks</span>
        <input type="text" value={filter.rank} placeholder="0, 4-7" onInput={(event) => set({ rank: event.currentTarget.value })} />
      </label>
      <Choice label="File" value={filter.file} choices={files} text={shortPath} choose={(file) => set({ file })} />
      <div class="ticks">
        {notes > 0 && <Tick label={`notes (${notes})`} on={filter.notes} change={(on) => set({ notes: on })} />}
        {suppressed > 0 && <Tick label={`suppressed (${suppressed})`} on={filter.suppressed} change={(on) => set({ suppressed: on })} />}
        <output aria-live="polite">{counted(shown, "finding")}</output>
        <button type="button" class="quiet" onClick={() => change(NO_FILTER)}>Clear</button>
      </div>
    </search>
  );
}

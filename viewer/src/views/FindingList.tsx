import { useEffect, useRef } from "preact/hooks";
import { placeText, ranksText } from "../model/format";
import type { Entry } from "../model/filter";
import { useVirtual } from "./useVirtual";

const ROW = 76;

interface Properties {
  entries: Entry[];
  chosen: string | null;
  none: string; // what is said where there are no entries
  link: (key: string) => string;
  chooseAgain: () => void; // the one that is chosen already
}

function Row({ entry, current, href, chooseAgain }: { entry: Entry; current: boolean; href: string; chooseAgain: () => void }) {
  const { finding } = entry;
  const place = finding.root_cause ?? finding.fix ?? finding.where;
  return (
    <a
      href={href} aria-current={current ? "true" : undefined} class={entry.suppressed ? "suppressed" : ""}
      onClick={() => current && chooseAgain()}
    >
      <span class="row-top">
        <span class={`dot ${finding.severity}`} role="img" aria-label={finding.severity} />
        <span class="row-kind">{finding.kind}</span>
        {entry.suppressed && <span class="badge">suppressed</span>}
        <span class="row-step">
          {finding.ranks.length > 0 && `${ranksText(finding.ranks, 14)} · `}step {finding.step}
        </span>
      </span>
      <span class="row-title">{entry.headline}</span>
      <span class="row-place">{place ? placeText(place) : (finding.op ?? "")}</span>
    </a>
  );
}

export function FindingList({ entries, chosen, none, link, chooseAgain }: Properties) {
  const list = useRef<HTMLElement>(null);
  const rows = useVirtual(list, entries.length, ROW);
  const index = entries.findIndex((entry) => entry.key === chosen);
  useEffect(() => {
    if (index >= 0) rows.show(index);
  }, [index]);
  return (
    <nav class="list" ref={list} aria-label="Findings" tabIndex={0} style={{ height: `${Math.max(rows.height, ROW) + 2}px` }}>
      {entries.length === 0 && <p class="faint empty">{none}</p>}
      <ul style={{ height: `${rows.height}px` }}>
        {rows.items.map((item) => {
          const entry = entries[item.index];
          if (!entry) return null;
          return (
            <li
              key={item.key}
              aria-setsize={entries.length}
              aria-posinset={item.index + 1}
              style={{ height: `${ROW}px`, transform: `translateY(${item.start}px)` }}
            >
              <Row entry={entry} current={item.index === index} href={link(entry.key)} chooseAgain={chooseAgain} />
            </li>
          );
        })}
      </ul>
    </nav>
  );
}

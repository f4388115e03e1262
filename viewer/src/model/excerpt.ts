// Lines of source around a place, as they were when the process ran.

import { charOffset } from "./columns";
import { highlighted, withRanges, type Piece } from "./highlight";
import type { Beside, Mark, SourcePlace } from "./report";

export interface Label {
  at: number; // column
  text: string;
  odd: boolean;
}

export interface ExcerptLine {
  number: number;
  pieces: Piece[];
  labels: Label[][]; // rows beneath the line; labels of one row do not touch
  here: boolean;
}

const TAB = "    ";

function window_(place: SourcePlace, sources: Beside["sources"], around: number): { first: number; lines: string[] } {
  const found = sources[place.file]?.find(
    ({ first, lines }) => first <= place.line && place.line < first + lines.length,
  );
  if (!found) return { first: place.line, lines: place.source === null ? [] : [place.source] };
  const from = Math.max(0, place.line - found.first - around);
  const to = Math.min(found.lines.length, place.line - found.first + around + 1);
  return { first: found.first + from, lines: found.lines.slice(from, to) };
}

function rowsOf(labels: Label[]): Label[][] {
  const rows: Label[][] = [];
  for (const label of [...labels].sort((a, b) => b.at - a.at)) {
    const row = rows.find((those) => those.every((other) => label.at + label.text.length + 1 < other.at));
    if (row) row.push(label);
    else rows.push([label]);
  }
  return rows;
}

// Columns as they are once tabs are as wide as they are shown.
function shown(text: string, chars: number): number {
  return text.slice(0, chars).replaceAll("\t", TAB).length;
}

export function excerpt(place: SourcePlace, sources: Beside["sources"], marks: Mark[], around: number): ExcerptLine[] {
  const { first, lines } = window_(place, sources, around);
  const pieces = highlighted(lines.map((line) => line.replaceAll("\t", TAB)).join("\n"));
  return lines.map((text, i) => {
    const number = first + i;
    if (number !== place.line) return { number, pieces: pieces[i] ?? [], labels: [], here: false };
    const spans = marks.map((mark) => ({
      begin: shown(text, charOffset(text, mark.begin)),
      end: shown(text, charOffset(text, mark.end)),
      style: mark.odd ? "mark odd" : "mark",
    }));
    const labels = marks
      .map((mark, at) => ({ at: spans[at]?.begin ?? 0, text: mark.label, odd: mark.odd }))
      .filter((label) => label.text !== "");
    return { number, pieces: withRanges(pieces[i] ?? [], spans), labels: rowsOf(labels), here: true };
  });
}

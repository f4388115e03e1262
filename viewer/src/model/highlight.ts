// Python source in coloured pieces, line by line. Text stays text: no markup is made of it.

import { highlightCode, tagHighlighter, tags } from "@lezer/highlight";
import { parser } from "@lezer/python";

export interface Piece {
  text: string;
  style: string; // a class of styles/code.css, or ""
}

const highlighter = tagHighlighter([
  { tag: [tags.keyword, tags.controlKeyword, tags.operatorKeyword, tags.definitionKeyword, tags.moduleKeyword], class: "k" },
  { tag: [tags.string, tags.special(tags.string)], class: "s" },
  { tag: [tags.number, tags.bool, tags.null], class: "n" },
  { tag: [tags.comment, tags.lineComment], class: "c" },
  { tag: [tags.function(tags.variableName), tags.function(tags.propertyName), tags.function(tags.definition(tags.variableName))], class: "f" },
  { tag: [tags.definition(tags.className), tags.className], class: "f" },
  { tag: [tags.self, tags.meta], class: "m" },
]);

export function highlighted(text: string): Piece[][] {
  const lines: Piece[][] = [[]];
  const put = (piece: string, style: string) => lines[lines.length - 1]?.push({ text: piece, style });
  highlightCode(text, parser.parse(text), highlighter, put, () => lines.push([]));
  return lines;
}

export interface Range {
  begin: number; // in characters of the line
  end: number;
  style: string;
}

// The pieces of a line, cut where ranges begin and end; a piece within a range has its style, too.
export function withRanges(pieces: Piece[], ranges: Range[]): Piece[] {
  const cut: Piece[] = [];
  let at = 0;
  for (const piece of pieces) {
    const end = at + piece.text.length;
    const borders = ranges.flatMap((range) => [range.begin, range.end]).filter((border) => border > at && border < end);
    const stops = [...new Set(borders)].sort((a, b) => a - b);
    let from = at;
    for (const to of [...stops, end]) {
      const within = ranges.find((range) => range.begin <= from && to <= range.end);
      const style = within ? `${piece.style} ${within.style}`.trim() : piece.style;
      cut.push({ text: piece.text.slice(from - at, to - at), style });
      from = to;
    }
    at = end;
  }
  return cut;
}

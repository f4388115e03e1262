// A unified diff as rows to show. Where one line takes the place of another, the words that differ are marked.

import { diffWordsWithSpace, parsePatch } from "diff";
import { highlighted, withRanges, type Piece, type Range } from "./highlight";

export interface DiffRow {
  sign: "+" | "-" | " ";
  before: number | null;
  after: number | null;
  pieces: Piece[];
}

interface Line {
  sign: "+" | "-" | " ";
  text: string;
}

function linesOf(hunk: { lines: string[] }): Line[] {
  const lines: Line[] = [];
  for (const line of hunk.lines) {
    const sign = line[0];
    if (sign === "+" || sign === "-" || sign === " ") lines.push({ sign, text: line.slice(1) });
  }
  return lines;
}

function changedWords(removed: string, added: string): [Range[], Range[]] {
  const ranges: [Range[], Range[]] = [[], []];
  let [before, after] = [0, 0];
  for (const part of diffWordsWithSpace(removed, added)) {
    const { length } = part.value;
    if (part.removed) ranges[0].push({ begin: before, end: before + length, style: "changed" });
    if (part.added) ranges[1].push({ begin: after, end: after + length, style: "changed" });
    if (!part.added) before += length;
    if (!part.removed) after += length;
  }
  return ranges;
}

// The ranges of each line: of a removed line that the next one replaces, and of that.
function rangesOf(lines: Line[]): Range[][] {
  const ranges: Range[][] = lines.map(() => []);
  lines.forEach((line, i) => {
    const next = lines[i + 1];
    const alone = lines[i - 1]?.sign !== "-" && lines[i + 2]?.sign !== "+";
    if (line.sign !== "-" || next?.sign !== "+" || !alone) return;
    [ranges[i], ranges[i + 1]] = changedWords(line.text, next.text);
  });
  return ranges;
}

function side(lines: Line[], without: "+" | "-"): Map<Line, Piece[]> {
  const kept = lines.filter((line) => line.sign !== without);
  const pieces = highlighted(kept.map((line) => line.text).join("\n"));
  return new Map(kept.map((line, i) => [line, pieces[i] ?? []]));
}

// The rows of each hunk.
export function diffRows(diff: string): DiffRow[][] {
  return parsePatch(diff).flatMap((file) =>
    file.hunks.map((hunk) => {
      const lines = linesOf(hunk);
      const [old, now, ranges] = [side(lines, "+"), side(lines, "-"), rangesOf(lines)];
      let [before, after] = [hunk.oldStart, hunk.newStart];
      return lines.map((line, i): DiffRow => {
        const pieces = (line.sign === "-" ? old : now).get(line) ?? [];
        return {
          sign: line.sign,
          before: line.sign === "+" ? null : before++,
          after: line.sign === "-" ? null : after++,
          pieces: withRanges(pieces, ranges[i] ?? []),
        };
      });
    }),
  );
}

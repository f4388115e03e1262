// "0, 4-7" as ranges; null for a text that names no rank, which is no limit.
export function parseRanks(text: string): [number, number][] | null {
  const ranges: [number, number][] = [];
  for (const word of text.split(/[\s,]+/)) {
    const match = /^(\d+)(?:-(\d+))?$/.exec(word);
    if (match) ranges.push([Number(match[1]), Number(match[2] ?? match[1])]);
  }
  return ranges.length > 0 ? ranges : null;
}

import { describe, expect, test } from "vitest";
import { charOffset } from "../src/model/columns";
import { diffRows } from "../src/model/diff";
import { excerpt } from "../src/model/excerpt";
import { filtered, entriesOf } from "../src/model/filter";
import { firstFailure } from "../src/model/first";
import { bytesText, momentText, rankRanges, ranksText } from "../src/model/format";
import { highlighted, withRanges } from "../src/model/highlight";
import { pathOf, pathText } from "../src/model/history";
import { curveName, curvesToDraw, peakPlaces, peakText, unlisted, type Curve, type Peak } from "../src/model/memory";
import { lastOperators } from "../src/model/operators";
import { endText, failedProcess, failureTimes, processNames, processOf, shortNames } from "../src/model/processes";
import { parseRanks } from "../src/model/ranks";
import type { Process } from "../src/model/report";
import { NO_FILTER, parseRoute, routeHash } from "../src/model/route";
import { eachPhase, extentOf, moved, spanBetween, summaryOf, waitSummaryOf, zoomed, type Steps } from "../src/model/timeline";
import { finding, lineage, operand, process, report } from "./samples";

const text = (pieces: { text: string }[]) => pieces.map((piece) => piece.text).join("");

describe("source", () => {
  test("a column of bytes after letters of several bytes is the right character", () => {
    expect(charOffset("é = ü + x", 10)).toBe(8);
  });

  test("highlighting keeps every character and line", () => {
    const source = 'def f(x):\n    return "</script>" + x  # <b>\n';
    expect(highlighted(source).map(text).join("\n")).toBe(source);
  });

  test("pieces are cut where a range begins and ends", () => {
    const pieces = withRanges(highlighted("return a * b")[0] ?? [], [{ begin: 7, end: 8, style: "mark" }]);
    expect(pieces.filter((piece) => piece.style.includes("mark")).map((piece) => piece.text)).toEqual(["a"]);
    expect(text(pieces)).toBe("return a * b");
  });

  test("labels beneath a line that would touch stand in rows of their own", () => {
    const place = { file: "a.py", line: 3, function: null, source: "x+y" };
    const marks = [
      { begin: 0, end: 1, odd: false, label: "cuda:0" },
      { begin: 2, end: 3, odd: true, label: "cpu" },
    ];
    const [line] = excerpt(place, {}, marks, 4);
    expect(line?.labels.map((row) => row.map((label) => label.text))).toEqual([["cpu"], ["cuda:0"]]);
  });

  test("an excerpt has the lines around the place that the page knows", () => {
    const lines = Array.from({ length: 30 }, (_, i) => `line${i + 10}`);
    const place = { file: "a.py", line: 20, function: null, source: "line20" };
    const shown = excerpt(place, { "a.py": [{ first: 10, lines }] }, [], 2);
    expect(shown.map((line) => line.number)).toEqual([18, 19, 20, 21, 22]);
    expect(shown.filter((line) => line.here).map((line) => text(line.pieces))).toEqual(["line20"]);
  });
});

describe("patches", () => {
  const diff = "--- a.py\n+++ a.py\n@@ -2,3 +2,3 @@\n a = 1\n-b = zeros(4)\n+b = zeros(4, device=a.device)\n c = 3\n";

  test("rows have the numbers of the lines before and after", () => {
    expect(diffRows(diff)[0]?.map((row) => [row.sign, row.before, row.after, text(row.pieces)])).toEqual([
      [" ", 2, 2, "a = 1"],
      ["-", 3, null, "b = zeros(4)"],
      ["+", null, 3, "b = zeros(4, device=a.device)"],
      [" ", 4, 4, "c = 3"],
    ]);
  });

  test("the words that a change adds are marked, and those that stay are not", () => {
    const added = diffRows(diff)[0]?.find((row) => row.sign === "+")?.pieces ?? [];
    const marked = text(added.filter((piece) => piece.style.includes("changed")));
    expect(marked).toContain("device");
    expect(marked).not.toContain("zeros");
  });
});

describe("history", () => {
  test("the path over devices is oldest first, and a stay has all its steps", () => {
    const path = pathOf({ ...operand(), lineage: lineage("cpu", "cuda:0", "cuda:0", "cpu") });
    expect(pathText(path)).toBe("cpu → cuda:0 → cpu");
    expect(path[1]?.steps).toHaveLength(2);
  });
});

describe("filter", () => {
  const made = report([
    finding({ id: "1", kind: "device-mismatch", ranks: [3], op: "aten::mul.Tensor" }),
    finding({ id: "2", kind: "memory-growth", severity: "warning", ranks: [0, 1, 2], op: "aten::add" }),
    finding({ id: "3", kind: "implicit-sync", severity: "note", ranks: [5] }),
  ], [finding({ id: "4" })]);
  const entries = entriesOf(made, {});
  const ids = (filter: Partial<typeof NO_FILTER>) => filtered(entries, { ...NO_FILTER, ...filter }).map((one) => one.finding.id);

  test("notes and what is suppressed show only when asked for", () => {
    expect(ids({})).toEqual(["1", "2"]);
    expect(ids({ notes: true, suppressed: true })).toEqual(["1", "2", "3", "4"]);
  });

  test("a kind that is named shows though it is a note", () => {
    expect(ids({ kind: "implicit-sync" })).toEqual(["3"]);
  });

  test("ranks are numbers and ranges", () => {
    expect(ids({ rank: "1-2" })).toEqual(["2"]);
    expect(ids({ rank: "3, 7" })).toEqual(["1"]);
    expect(parseRanks("nonsense")).toBeNull();
  });

  test("all words have to be somewhere in the finding", () => {
    expect(ids({ text: "MUL aten" })).toEqual(["1"]);
    expect(ids({ text: "mul add" })).toEqual([]);
  });
});

describe("first failure", () => {
  test("is what the ranks told each other", () => {
    const made = report([finding({ id: "1", time: "2026-01-01T00:00:00Z" }), finding({ id: "2", rank: 3 })]);
    made.run.first_failure = { rank: 3, step: 9, time_ns: 0, finding: "2", where: null, what: null, waiting: null };
    expect(firstFailure(made)).toMatchObject({ rank: 3, step: 9, told: true, finding: { id: "2" } });
  });

  test("else is the earliest error that the program did not catch", () => {
    const made = report([
      finding({ id: "1", time: "2026-01-01T00:00:03Z" }),
      finding({ id: "2", time: "2026-01-01T00:00:01Z", handled: true }),
      finding({ id: "3", time: "2026-01-01T00:00:02Z" }),
    ]);
    expect(firstFailure(made)?.finding?.id).toBe("3");
  });

  test("what ranks waited in for ranks that never came is the collective of the finding, suppressed or not", () => {
    const collective = {
      name: "all_reduce", group: "0", group_ranks: [0, 1], sequence: 4, dtype: null, bytes: 0, device: null, per_rank: [],
    };
    const hang = finding({ id: "1", collective });
    for (const made of [report([hang]), report([], [hang])]) {
      made.run.first_failure = { rank: 0, step: 1, time_ns: 0, finding: "1", where: null, what: null, missing: [1], waiting: null };
      expect(firstFailure(made)?.waiting).toBe(collective);
    }
  });

  test("there is none in a run without errors", () => {
    expect(firstFailure(report([finding({ severity: "warning" })]))).toBeNull();
  });
});

describe("address", () => {
  test("what it says comes back whole", () => {
    const route = parseRoute("#view=timeline&finding=abc&kind=memory-growth&text=a%20b&notes=1");
    expect(route).toMatchObject({ view: "timeline", finding: "abc", filter: { kind: "memory-growth", text: "a b", notes: true } });
    expect(parseRoute(routeHash(route))).toEqual(route);
  });

  test("an unknown view is the list of findings", () => {
    expect(parseRoute("#view=nothing").view).toBe("findings");
  });
});

describe("numbers", () => {
  test("ranks that follow one another are ranges", () => {
    expect(rankRanges([7, 0, 1, 2, 3, 9, 10])).toBe("0-3, 7, 9, 10");
  });

  test("ranks that are too many to name are counted", () => {
    const even = Array.from({ length: 500 }, (_, i) => 2 * i);
    expect([ranksText(even), ranksText([0, 1, 2, 3]), ranksText([5])]).toEqual(["500 ranks", "ranks 0-3", "rank 5"]);
  });

  test("bytes have a unit", () => {
    expect([bytesText(1), bytesText(1536), bytesText(3 * 2 ** 30)]).toEqual(["1 byte", "1.5 KiB", "3.0 GiB"]);
  });

  test("moments are as exact as they have to be", () => {
    expect([momentText(7.64218, 0.02), momentText(7.6, 1), momentText(3725, 60)]).toEqual(["7.64 s", "8 s", "1:02:05"]);
  });

  test("operators are unpacked by the list of texts", () => {
    const part = { texts: ["aten::add", "a.py", "f"], processes: [] };
    expect(lastOperators(part, { tid: 1, name: "", operators: 1, more: 0, last: [0, 1, 12, 2, 4] })).toEqual([
      { op: "aten::add", file: "a.py", line: 12, function: "f", step: 4 },
    ]);
  });
});

describe("memory", () => {
  test("of curves of one device that count other things, the one of iterations is drawn", () => {
    const peak = { step: 0, used: 0, held: 0, time: 0 };
    const curve = (device: string | null, clock?: string): Curve => ({
      device, ...(clock === undefined ? {} : { clock }), points: 0, peak, step: [], used: [], held: [], time: [],
    });
    const drawn = curvesToDraw([curve(null, "shared-tensors"), curve(null), curve("cuda:0", "shared-tensors")]);
    expect(drawn.map(curveName)).toEqual(["host", "cuda:0, by shared tensors"]);
  });

  const peak: Peak = {
    device: "cuda:0", peak: { bytes: 3 << 20, step: 4, in_backward: true }, step: 4, moment: "backward-begins",
    allocated: 2 << 20, reserved: 4 << 20, listed: 2 << 20, by_kind: [{ kind: "parameters", bytes: 2 << 20, tensors: 2 }],
    by_place: [0, 1, 2, 12, 2 << 20, 2],
  };

  test("a peak is told with its moment, and with the most that the allocator ever had", () => {
    expect(peakText(peak)).toBe("2.0 MiB in tensors when the backward of step 4 began. The most there ever was: 3.0 MiB, in the backward of step 4.");
    expect(peakText({ ...peak, moment: "census", peak: null })).toBe("2.0 MiB in tensors when step 4 began.");
  });

  test("lines of a peak are read with their kind", () => {
    expect(peakPlaces(["parameters", "aten::empty", "a.py"], peak)).toEqual([
      { kind: "parameters", op: "aten::empty", file: "a.py", line: 12, bytes: 2 << 20, tensors: 2 },
    ]);
  });

  test("what no operator was seen to make is told where it is more than a hundredth", () => {
    expect(unlisted(peak)).toBe(0);
    expect(unlisted({ ...peak, listed: 1 << 20 })).toBe(1 << 20);
  });
});

describe("ends of processes", () => {
  const open = { ...process(), close: "open" as const, rank: 0 };

  test("one that was ended after another rank had failed says so", () => {
    expect(endText({ ...open, ended_after: 3 })).toBe("ended after rank 3 had failed");
  });

  test("one without a mark of its end may still run, unless it is known to have ended", () => {
    expect(endText(open)).toBe("killed, crashed, or still running");
    expect(endText({ ...open, ended: "2026-01-01T00:00:00.000Z" })).toBe("did not exit by itself: it was killed, or it crashed");
    expect(endText({ ...open, close: "halted" })).toBe("halted");
  });
});

describe("names of processes", () => {
  test("processes of one rank have their pids, others do not", () => {
    const processes = [0, 0, 1].map((rank, i) => ({ ...process(), rank, pid: 10 + i }));
    expect(processNames(processes)).toEqual(["rank 0, pid 10", "rank 0, pid 11", "rank 1"]);
  });
});

describe("processes", () => {
  const start = (second: number) => `2026-01-01T00:00:0${second}.000Z`;
  const made = (part: Partial<Process>): Process => ({ ...process(), pid: 10, rank: 0, start: start(0), ...part });
  const nanoseconds = (second: number) => Date.parse(start(second)) * 1e6;

  test("names in the margin of a chart are short, and differ", () => {
    const processes = [{ rank: 128, attempt: 1 }, { rank: 128, attempt: 0 }, { rank: 7, pid: 70 }, { rank: 7, pid: 71 }, { rank: null, pid: 5 }];
    expect(shortNames(processes.map(made))).toEqual(["128 #1", "rank 128", "7 · 70", "7 · 71", "pid 5"]);
  });

  test("a finding is of the process with its pid and its rank that had begun last", () => {
    const processes = [made({ rank: 1 }), made({}), made({ attempt: 1, start: start(4) }), made({ attempt: 2, start: start(8) })];
    expect(processOf(processes, finding({ pid: 10, rank: 0, time: start(3) }))).toBe(1);
    expect(processOf(processes, finding({ pid: 10, rank: 0, time: start(6) }))).toBe(2);
    expect(processOf(processes, finding({ pid: 10, rank: 1, time: start(6) }))).toBe(0);
    expect(processOf(processes, finding({ pid: 10, rank: 2, time: start(6) }))).toBe(-1);
  });

  test("where the finding names another rank's process, the one that failed is of the rank that failed first", () => {
    const processes = [made({}), made({ rank: 3, pid: 31 }), made({ rank: 3, pid: 30, steps: 9 })];
    const merged = finding({ pid: 10, rank: 0, ranks: [0, 3], time: start(2) });
    const first = (rank: number) => ({
      finding: merged, rank, step: 9, time: start(2), where: null, what: null, missing: [], lastOperator: null, waiting: null, told: true,
    });
    expect([failedProcess(processes, first(0)), failedProcess(processes, first(3))]).toEqual([0, 2]);
    expect(failedProcess(processes, null)).toBe(-1);
  });

  test("every process has the time of its own first error, and of what only the comparison of ranks tells", () => {
    const processes = [made({ first_error_ns: nanoseconds(3) }), made({ pid: 11, first_error_ns: nanoseconds(4) }), made({ pid: 12 }), made({ pid: 13 })];
    const findings = [finding({ pid: 10, rank: 0, ranks: [0, 1], time: start(3) }), finding({ pid: 12, rank: 0, time: start(5) })];
    expect(failureTimes(processes, findings, start(1))).toEqual([2, 3, 4, null]);
    expect(failureTimes(processes, findings, null)).toEqual([null, null, null, null]);
  });
});

describe("timeline", () => {
  const steps: Steps = {
    step: [0, 1], begin: [0, 10e6], taken: 2,
    forward: [1e6, 1e6], backward: [2e6, 2e6], between: [0, 0], optimizer: [1e6, 0], rest: [0, 1e6], data: null,
  };

  test("phases follow one another, and only those in the span are drawn", () => {
    const drawn: [string, number, number][] = [];
    eachPhase(steps, { from: 10.5, to: 12 }, (phase, from, to) => drawn.push([phase, from, to]));
    expect(drawn).toEqual([["forward", 10, 11], ["backward", 11, 13]]);
  });

  test("what a step has waited for data is a phase of its own, at its end", () => {
    const waiting: Steps = { ...steps, data: [4e6, 0] };
    const drawn: [string, number, number][] = [];
    eachPhase(waiting, { from: 0, to: 9 }, (phase, from, to) => drawn.push([phase, from, to]));
    expect(drawn.at(-1)).toEqual(["data", 4, 8]);
    expect(summaryOf(waiting)).toMatchObject({ dataIsTold: true, longest: 8, shares: { data: 1 / 3 } });
    expect(summaryOf(steps)).toMatchObject({ dataIsTold: false, shares: { data: 0 } });
  });

  test("shares are of the time of all steps", () => {
    expect(summaryOf(steps)).toMatchObject({ median: 4, shares: { backward: 0.5, forward: 0.25 } });
  });

  test("a wait in a collective is within the extent, and the longest is named", () => {
    const waits = { begin: [2e6, 30e6], length: [1e6, 9e6], name: [0, 1] };
    expect(extentOf({ texts: [], processes: [steps], waits: [waits] }, [])).toEqual({ from: 0, to: 39 });
    expect(waitSummaryOf(waits, ["broadcast", "all_reduce"])).toEqual({ count: 2, longest: 9, name: "all_reduce" });
  });

  test("failures are within the extent, with room for the mark of the last", () => {
    const { from, to } = extentOf({ texts: [], processes: [steps], waits: [null] }, [null, 50]);
    expect([from, to > 50, to < 51]).toEqual([0, true, true]);
  });

  test("where all that is known is one moment, it has time around it", () => {
    const first: Steps = { ...steps, step: [0], begin: [3e6], forward: [0], backward: [0], between: [0], optimizer: [0], rest: [0] };
    expect(extentOf({ texts: [], processes: [first], waits: [null] }, [3])).toEqual({ from: 2.5, to: 3.5 });
  });

  test("a drag is a span in either direction, unless it is too short to be drawn", () => {
    expect(spanBetween(7, 5)).toEqual({ from: 5, to: 7 });
    expect(spanBetween(5, 5 + 5e-7)).toBeNull();
  });

  test("zooming and moving stay within the whole", () => {
    const whole = { from: 0, to: 100 };
    expect(zoomed({ from: 10, to: 90 }, whole, 4, 50)).toEqual(whole);
    expect(moved({ from: 80, to: 100 }, whole, 1)).toEqual({ from: 80, to: 100 });
    expect(moved({ from: 40, to: 60 }, whole, -1)).toEqual({ from: 20, to: 40 });
  });
});

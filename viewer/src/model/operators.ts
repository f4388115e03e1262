// The last operators of each thread, as the page's part "operators" has them: five numbers each, three of which point
// into its list of texts.

export interface OperatorsPart {
  texts: string[];
  processes: PackedThread[][];
}

export interface PackedThread {
  tid: number;
  name: string;
  operators: number;
  last: number[];
  more: number; // in the trace
}

export interface LastOperator {
  op: string;
  file: string;
  line: number;
  function: string;
  step: number;
}

const FIELDS = 5;

// Newest first.
export function lastOperators(part: OperatorsPart, thread: PackedThread): LastOperator[] {
  const text = (number: number | undefined) => part.texts[number ?? -1] ?? "";
  const operators: LastOperator[] = [];
  for (let i = 0; i + FIELDS <= thread.last.length; i += FIELDS) {
    const [op, file, line, name, step] = thread.last.slice(i, i + FIELDS);
    operators.push({ op: text(op), file: text(file), line: line ?? 0, function: text(name), step: step ?? 0 });
  }
  return operators;
}

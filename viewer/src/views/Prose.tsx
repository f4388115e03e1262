// A sentence of the report, in which names stand between backticks.
export function Prose({ text }: { text: string }) {
  return <>{text.split("`").map((piece, i) => (i % 2 === 1 ? <code key={i}>{piece}</code> : piece))}</>;
}

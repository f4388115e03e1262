import type { Piece } from "../model/highlight";

// Text with its colours. Tabs are as wide as in the terminal's excerpts, so that marks stand under what they mark.
export function Code({ pieces }: { pieces: Piece[] }) {
  return (
    <code>
      {pieces.map(({ text, style }, i) => (style === "" ? text : <span key={i} class={style}>{text}</span>))}
    </code>
  );
}

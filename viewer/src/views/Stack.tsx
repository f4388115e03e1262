import { counted } from "../model/format";
import type { Frame, NativeFrame } from "../model/report";
import { Fold } from "./Fold";
import { Place } from "./Place";
import { Snippet } from "./Snippet";

export function Stack({ title, frames }: { title: string; frames: Frame[] }) {
  if (frames.length === 0) return null;
  return (
    <Fold class="stack" summary={<>{title} <span class="faint">{counted(frames.length, "frame")}, innermost first</span></>}>
      {() => (
        <ol>
          {frames.map((frame, i) => (
            <li key={i} class={frame.torch || frame.library ? "library" : ""}>
              <Place place={frame} />
              <Snippet text={frame.source} />
            </li>
          ))}
        </ol>
      )}
    </Fold>
  );
}

export function NativeStack({ frames }: { frames: NativeFrame[] | undefined }) {
  if (!frames || frames.length === 0) return null;
  return (
    <details class="stack">
      <summary>Native frames <span class="faint">innermost first</span></summary>
      <ol>
        {frames.map((frame, i) => (
          <li key={i}>
            <code>{frame.symbol ?? "(no symbol)"}</code> <span class="faint">{frame.module}</span>
          </li>
        ))}
      </ol>
    </details>
  );
}

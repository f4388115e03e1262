import { excerpt, type ExcerptLine } from "../model/excerpt";
import { placeText } from "../model/format";
import type { Beside, Mark, SourcePlace } from "../model/report";
import { Code } from "./Code";

interface Properties {
  place: SourcePlace;
  beside: Beside;
  marks?: Mark[];
  around?: number;
}

function Labels({ line }: { line: ExcerptLine }) {
  return (
    <>
      {line.labels.map((row, i) => (
        <tr key={i} class="labels">
          <td class="no" />
          <td class="text">
            {row.map((label) => (
              <span key={label.at} class={label.odd ? "label odd" : "label"} style={{ marginLeft: `${label.at}ch` }}>
                {label.text}
              </span>
            ))}
          </td>
        </tr>
      ))}
    </>
  );
}

export function Source({ place, beside, marks = [], around = 4 }: Properties) {
  const lines = excerpt(place, beside.sources, marks, around);
  if (lines.length === 0) return <p class="faint">The trace has no text of {placeText(place)}.</p>;
  return (
    <div class="scroll source" tabIndex={0} role="region" aria-label={`Source of ${placeText(place)}`}>
      <table class="code">
        <caption class="hidden">Lines around {placeText(place)}</caption>
        <tbody>
          {lines.map((line) => (
            <>
              <tr key={line.number} class={line.here ? "here" : ""}>
                <td class="no">{line.number}</td>
                <td class="text"><Code pieces={line.pieces} /></td>
              </tr>
              <Labels line={line} />
            </>
          ))}
        </tbody>
      </table>
    </div>
  );
}

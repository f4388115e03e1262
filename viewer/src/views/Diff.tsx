import { diffRows } from "../model/diff";
import { baseName } from "../model/format";
import type { Patch } from "../model/report";
import { Code } from "./Code";
import { CopyButton } from "./CopyButton";

const SAID = { "+": "added", "-": "removed", " ": "" };

export function Diff({ patch, main = false }: { patch: Patch; main?: boolean }) {
  return (
    <figure class="diff">
      <figcaption>
        <span class="path" title={patch.file}>{baseName(patch.file)}</span>
        <CopyButton text={patch.diff} label="Copy patch" main={main} />
      </figcaption>
      <div class="scroll" tabIndex={0} role="region" aria-label={`Patch of ${baseName(patch.file)}`}>
        <table class="code">
          <caption class="hidden">Change of {patch.file}, line by line</caption>
          {diffRows(patch.diff).map((rows, hunk) => (
            <tbody key={hunk}>
              {rows.map((row, i) => (
                <tr key={i} class={row.sign === "+" ? "add" : row.sign === "-" ? "del" : ""}>
                  <td class="no">{row.before ?? ""}</td>
                  <td class="no">{row.after ?? ""}</td>
                  <td class="sign">
                    <span aria-hidden="true">{row.sign}</span>
                    <span class="hidden">{SAID[row.sign]}</span>
                  </td>
                  <td class="text"><Code pieces={row.pieces} /></td>
                </tr>
              ))}
            </tbody>
          ))}
        </table>
      </div>
    </figure>
  );
}

import { clockText, rankRanges, ranksText, sentence, times } from "../model/format";
import type { Entry } from "../model/filter";
import type { Beside, Finding } from "../model/report";
import { Change } from "./Change";
import { CopyButton } from "./CopyButton";
import { History } from "./History";
import { Particulars } from "./Kinds";
import { Place } from "./Place";
import { Prose } from "./Prose";
import { Source } from "./Source";
import { NativeStack, Stack } from "./Stack";

function linkTo(key: string): string {
  return `${location.href.replace(/#.*/, "")}#finding=${key}`;
}

function circumstances(finding: Finding, cost: string): string[] {
  return [
    ranksText(finding.ranks),
    `${finding.count > 1 ? "first at " : ""}step ${finding.step}`,
    finding.phase === "other" ? "" : finding.phase,
    finding.thread_name === null ? "" : `thread ${finding.thread_name}`,
    `pid ${finding.pid}`,
    times(finding.count),
    cost,
    clockText(finding.time),
  ].filter((word) => word !== "");
}

// Where there are too many to name them in one line.
function AllRanks({ ranks }: { ranks: number[] }) {
  const names = rankRanges(ranks);
  if (ranksText(ranks).endsWith(names)) return null;
  return <details><summary>Which ranks</summary><p>{names}</p></details>;
}

function Where({ finding, beside }: { finding: Finding; beside: Beside }) {
  const { where } = finding;
  if (!where) return null;
  return (
    <section aria-labelledby="where-title">
      <h3 id="where-title">Where it happened</h3>
      <p><Place place={where} /></p>
      <Source place={where} beside={beside} marks={beside.marks[finding.id] ?? []} />
      {finding.message !== null && <blockquote class="message"><span class="hidden">PyTorch's message: </span>{finding.message}</blockquote>}
    </section>
  );
}

export function FindingView({ entry, beside }: { entry: Entry; beside: Beside }) {
  const { finding } = entry;
  const others = finding.other_ranks ?? [];
  const ended = finding.ended_ranks ?? [];
  const said = beside.sentences[finding.id] ?? {};
  return (
    <article class="finding" aria-labelledby="finding-title">
      <header>
        <p class="kind">
          <span class={`badge ${finding.severity}`}>{finding.severity}</span> {finding.kind}
          {finding.handled && <span class="faint"> · the program caught it</span>}
          <CopyButton text={linkTo(entry.key)} label="Copy link" />
        </p>
        <h2 id="finding-title" tabIndex={-1}><Prose text={entry.headline} /></h2>
        <p class="circumstances">
          {circumstances(finding, said.cost ?? "").map((word) => <span key={word}>{word}</span>)}
        </p>
        <AllRanks ranks={finding.ranks} />
        {others.length > 0 && <p class="faint">Not on {ranksText(others)}.</p>}
        {ended.map(({ ranks, what }) => (
          <p key={what} class="faint">Ended in that step without it: {ranksText(ranks)}, {ranks.length > 1 && "each "}{what}.</p>
        ))}
        {said.silence !== undefined && <p class="notice">{sentence(said.silence)}</p>}
      </header>
      <Change finding={finding} beside={beside} />
      <Where finding={finding} beside={beside} />
      <Particulars finding={finding} said={said} />
      {finding.operands.length > 0 && (
        <section aria-labelledby="history-title">
          <h3 id="history-title">How each operand got to its device</h3>
          <History operands={finding.operands} />
        </section>
      )}
      <Stack title="Call stack" frames={finding.stack} />
      <Stack title="The forward operator whose backward this is" frames={finding.forward ?? []} />
      <NativeStack frames={finding.native_stack} />
    </article>
  );
}

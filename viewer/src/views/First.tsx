import { clockText, placeText, ranksText } from "../model/format";
import type { First } from "../model/first";
import type { Entry } from "../model/filter";
import { CollectivePart } from "./Kinds";
import { Fold } from "./Fold";
import { Place } from "./Place";
import { Prose } from "./Prose";

interface Properties {
  first: First;
  entry: Entry | null;
  href: string | null;
  several: boolean; // ranks
}

// The one thing to know of a run that failed.
export function FirstFailure({ first, entry, href, several }: Properties) {
  const finding = first.finding;
  const change = finding?.root_cause ?? finding?.fix ?? null;
  const own = first.lastOperator ? first.where : null; // the last line of the program that ran an operator
  const where = change ?? own ?? finding?.where ?? null;
  // A rank that others waited for was at a line where nothing has to be wrong.
  const at = own ? "Last line of the program" : finding?.collective && finding.rank !== null ? `Rank ${finding.rank} was at` : "At";
  const missing = first.missing.length > 0;
  const who = first.rank === null ? "It failed" : several ? `Rank ${first.rank} failed first,` : `Rank ${first.rank} failed`;
  const unseen = first.waiting?.per_rank.some((one) => one.rank === first.missing[0] && one.state === "no_trace");
  const never = `never entered ${first.waiting?.name ?? "a collective"} ${first.waiting?.sequence ?? ""}`;
  const absent = `${ranksText(first.missing)} ${unseen ? "left no trace here" : never}`;
  const its = missing && first.rank !== null ? `Rank ${first.rank} gave up first: it` : "It";
  const others = finding?.ranks.filter((rank) => rank !== first.rank) ?? [];
  return (
    <section class="first" aria-labelledby="first-title">
      <h2 id="first-title">
        {missing ? `${absent.charAt(0).toUpperCase()}${absent.slice(1).trimEnd()},` : who} at step {first.step}
        {finding && finding.phase !== "other" && ` in ${finding.phase}`}
      </h2>
      <p class="first-what"><Prose text={entry?.headline ?? (first.what === null ? "" : `It ${first.what}`)} /></p>
      <dl>
        {where && <div><dt>{change ? "Change" : at}</dt><dd><Place place={where} /></dd></div>}
        {finding?.fix && <div><dt>How</dt><dd><Prose text={finding.fix.text} /></dd></div>}
        {entry && first.what !== null && <div><dt>{its}</dt><dd>{first.what}</dd></div>}
        {first.lastOperator && (!own || placeText(own) !== placeText(first.lastOperator)) && <div><dt>Last operator</dt><dd><Place place={first.lastOperator} /></dd></div>}
        {!where && first.where && <div><dt>At</dt><dd><Place place={first.where} /></dd></div>}
        {others.length > 0 && <div><dt>Also on</dt><dd>{ranksText(others)}</dd></div>}
        {first.time !== null && <div><dt>When</dt><dd>{clockText(first.time)}</dd></div>}
      </dl>
      {first.waiting && (
        <Fold summary={<>What the other ranks waited in: <code>{first.waiting.name}</code></>}>
          {() => first.waiting && <CollectivePart collective={first.waiting} />}
        </Fold>
      )}
      {!first.told && several && <p class="faint">By the clocks of the hosts, which may differ.</p>}
      {href !== null && <p class="first-link"><a href={href}>Show this finding</a></p>}
    </section>
  );
}

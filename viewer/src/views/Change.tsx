import type { Beside, Cause, Finding, Fix } from "../model/report";
import { Diff } from "./Diff";
import { Place } from "./Place";
import { Prose } from "./Prose";
import { Snippet } from "./Snippet";
import { Source } from "./Source";

function title(cause: Cause): string {
  if (cause.confidence === null) return "Cause";
  return cause.confidence === "likely" ? "Likely cause" : "Possible cause";
}

function Patches({ fix, main }: { fix: Fix | null | undefined; main: boolean }) {
  return <>{fix?.patches.map((patch, i) => <Diff key={i} patch={patch} main={main && i === 0} />)}</>;
}

function Alternatives({ causes }: { causes: Cause[] }) {
  if (causes.length === 0) return null;
  return (
    <details class="alternatives">
      <summary>Or change one of {causes.length === 1 ? "this line" : `these ${causes.length} lines`}</summary>
      <ol>
        {causes.map((cause, i) => (
          <li key={i}>
            <Place place={cause} />
            <Snippet text={cause.source} />
            <p><Prose text={cause.why} /></p>
            {cause.fix && <p class="advice"><Prose text={cause.fix.text} /></p>}
            <Patches fix={cause.fix} main={false} />
          </li>
        ))}
      </ol>
    </details>
  );
}

// The cause, what to change, and where else the change could stand.
export function Change({ finding, beside }: { finding: Finding; beside: Beside }) {
  const { root_cause: cause, fix } = finding;
  if (cause === null && fix === null) return null;
  const patched = (fix?.patches.length ?? 0) > 0;
  return (
    <section class="change" aria-labelledby="change-title">
      <h3 id="change-title">The change</h3>
      {fix && <p class="advice"><Prose text={fix.text} /></p>}
      <Patches fix={fix} main={true} />
      {cause && (
        <>
          <p class="cause"><strong>{title(cause)}</strong> <Place place={cause} /></p>
          {!patched && <Source place={cause} beside={beside} around={2} />}
          <p><Prose text={cause.why} /></p>
        </>
      )}
      <Alternatives causes={finding.alternatives} />
    </section>
  );
}

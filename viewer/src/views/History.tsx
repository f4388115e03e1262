import { operandName, shapeText } from "../model/format";
import { pathOf, pathText, type Stay } from "../model/history";
import type { LineageStep, Operand, SourcePlace } from "../model/report";
import { Device, deviceClass } from "./Device";
import { Place } from "./Place";
import { Snippet } from "./Snippet";

function Path({ path }: { path: Stay[] }) {
  return (
    <p class="devices" role="img" aria-label={pathText(path).replaceAll("→", "then")}>
      {path.map((stay, i) => (
        <span key={i}>
          {i > 0 && <span class="arrow">→</span>}
          <Device name={stay.device} />
        </span>
      ))}
    </p>
  );
}

function Calls({ label, calls, open }: { label: string; calls: SourcePlace[] | undefined; open: boolean }) {
  if (!calls || calls.length === 0) return null;
  return (
    <details class="calls" open={open}>
      <summary>{label}</summary>
      <ol>
        {calls.map((call, i) => (
          <li key={i}><Place place={call} /><Snippet text={call.source} /></li>
        ))}
      </ol>
    </details>
  );
}

function Step({ step, open }: { step: LineageStep; open: boolean }) {
  return (
    <li class={`step ${step.how}`}>
      <span class="how">{step.how}</span>
      <Place place={step} />
      {step.op !== null && <code class="op">{step.op}</code>}
      <Snippet text={step.source} />
      <Calls label="Called by" calls={step.calls} open={open} />
      <Calls label="Inside the library" calls={step.within} open={false} />
    </li>
  );
}

function Operated({ operand }: { operand: Operand }) {
  const path = pathOf(operand);
  return (
    <details class={operand.odd ? "operand odd" : "operand"} open={operand.odd}>
      <summary>
        <code class="name">{operandName(operand)}</code>
        <Device name={operand.device} />
        <span class="faint">{[shapeText(operand), operand.dtype, operand.is === "unknown" ? null : operand.is].filter(Boolean).join(" · ")}</span>
        {operand.odd && <span class="badge odd">odd one</span>}
      </summary>
      {path.length === 0 && <p class="faint">No history of it is known.</p>}
      {path.length > 1 && <Path path={path} />}
      <ol class="path">
        {path.map((stay, i) => (
          <li key={i} class={`stay ${deviceClass(stay.device)}`}>
            <span class="stay-name">{stay.device}</span>
            <ol>{stay.steps.map((step, at) => <Step key={at} step={step} open={operand.odd} />)}</ol>
          </li>
        ))}
      </ol>
    </details>
  );
}

// The odd operands first.
export function History({ operands }: { operands: Operand[] }) {
  const sorted = [...operands].sort((a, b) => Number(b.odd) - Number(a.odd));
  return <>{sorted.map((operand) => <Operated key={operand.arg} operand={operand} />)}</>;
}

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

interface Properties {
  summary: ComponentChildren;
  class?: string;
  children: () => ComponentChildren;
}

// What it holds is made when somebody opens it: of a run with many ranks that would be thousands of stacks.
export function Fold({ summary, class: name, children }: Properties) {
  const [opened, set] = useState(false);
  return (
    <details class={name} onToggle={(event) => event.currentTarget.open && set(true)}>
      <summary>{summary}</summary>
      {opened && children()}
    </details>
  );
}

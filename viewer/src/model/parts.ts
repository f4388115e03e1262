// The data of the page: script elements that the command wrote into it. The first is there at once; the others are read
// when a view needs them: that takes a while for runs of many ranks.

import type { Head } from "./report";

function element(name: string): HTMLScriptElement | null {
  return document.querySelector(`script[data-part="${name}"]`);
}

const known = new Map<string, unknown>();

// null where the page has no such part.
export function part(name: string): unknown {
  if (!known.has(name)) {
    const script = element(name);
    known.set(name, script === null ? null : JSON.parse(script.textContent));
  }
  return known.get(name);
}

export function head(): Head {
  const data = part("head");
  if (data === null) throw new Error("This page holds no report.");
  return data as Head;
}

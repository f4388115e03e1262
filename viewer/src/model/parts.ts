// The data of the page: script elements that the command wrote into it. The first is there at once; the others are read
// when a view needs them. Large ones are compressed (zlib's format, in base64).

import type { Head } from "./report";

function element(name: string): HTMLScriptElement | null {
  return document.querySelector(`script[data-part="${name}"]`);
}

async function inflated(base64: string): Promise<string> {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).text();
}

async function read(name: string): Promise<unknown> {
  const script = element(name);
  if (script === null) return null;
  const text = script.textContent.trim();
  return JSON.parse(script.dataset["encoding"] === "deflate" ? await inflated(text) : text) as unknown;
}

const known = new Map<string, Promise<unknown>>();

// null where the page has no such part.
export function part(name: string): Promise<unknown> {
  const promise = known.get(name) ?? read(name);
  known.set(name, promise);
  return promise;
}

export async function head(): Promise<Head> {
  const data = await part("head");
  if (data === null) throw new Error("This page holds no report.");
  return data as Head;
}

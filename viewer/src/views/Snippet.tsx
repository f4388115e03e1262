import { highlighted } from "../model/highlight";
import { Code } from "./Code";

// One line of source without its indentation.
export function Snippet({ text }: { text: string | null }) {
  if (text === null || text.trim() === "") return null;
  return <pre class="snippet"><Code pieces={highlighted(text.trim())[0] ?? []} /></pre>;
}

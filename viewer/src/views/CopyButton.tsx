import { useState } from "preact/hooks";

// Without permission for the clipboard, the text is selected in a field of its own and copied from there.
async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = document.createElement("textarea");
    field.value = text;
    document.body.append(field);
    field.select();
    // eslint-disable-next-line @typescript-eslint/no-deprecated
    const done = document.execCommand("copy");
    field.remove();
    return done;
  }
}

export function CopyButton({ text, label, main = false }: { text: string; label: string; main?: boolean }) {
  const [state, setState] = useState("");
  const onClick = () => void copy(text).then((done) => setState(done ? "Copied" : "Not copied: select the text"));
  return (
    <span class="copy">
      <button type="button" onClick={onClick} data-copy={main ? "main" : undefined}>
        {label}
      </button>
      <span role="status">{state}</span>
    </span>
  );
}

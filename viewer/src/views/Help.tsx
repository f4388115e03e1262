import { useEffect, useRef } from "preact/hooks";

const KEYS: [string, string][] = [
  ["j, k", "next and previous finding"],
  ["/", "search"],
  ["1 to 5", "findings, timeline, memory, operators, run"],
  ["c", "copy the patch"],
  ["n", "show or hide notes"],
  ["f", "the first failure"],
  ["t", "light, dark, or as the system has it"],
  ["+, -, 0", "in a chart: zoom in, zoom out, all"],
  ["←, →", "in a chart: earlier, later"],
  ["?", "these keys"],
  ["Esc", "close, or leave a field"],
];

export function Help({ close }: { close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} aria-labelledby="help-title" onClose={close}>
      <h2 id="help-title">Keys</h2>
      <dl class="keys">
        {KEYS.map(([key, meaning]) => <div key={key}><dt><kbd>{key}</kbd></dt><dd>{meaning}</dd></div>)}
      </dl>
      <p class="faint">The address of this page names the finding, the view and the filter: copy it to share what you see.</p>
      <form method="dialog"><button type="submit">Close</button></form>
    </dialog>
  );
}

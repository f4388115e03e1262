import { useEffect, useRef } from "preact/hooks";

export function focusFinding(): void {
  document.getElementById("finding-title")?.focus();
}

// Leads whoever chooses a finding to it: what had the focus may be gone, and on a narrow screen the finding stands below
// the list. A filter that leaves another one chosen names none in the address, and leads nobody away from itself. Returns
// what is to be called before a finding is chosen that may have been chosen before.
export function useFindingFocus(finding: string | null): () => void {
  const before = useRef(finding);
  const wanted = useRef(false);
  useEffect(() => {
    if (wanted.current || (finding !== null && finding !== before.current)) focusFinding();
    wanted.current = false;
    before.current = finding;
  });
  return () => {
    wanted.current = true;
  };
}

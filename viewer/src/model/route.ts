// What the address says after its `#`: which view, which finding, and how the list is filtered. A link to a finding
// opens it.

export const VIEWS = ["findings", "timeline", "memory", "operators", "run"] as const;
export type View = (typeof VIEWS)[number];

export interface Filter {
  text: string;
  kind: string;
  rank: string;
  file: string;
  notes: boolean;
  suppressed: boolean;
}

export interface Route {
  view: View;
  finding: string | null;
  filter: Filter;
}

export const NO_FILTER: Filter = { text: "", kind: "", rank: "", file: "", notes: false, suppressed: false };

export function parseRoute(hash: string): Route {
  const words = new URLSearchParams(hash.replace(/^#/, ""));
  const view = VIEWS.find((name) => name === words.get("view")) ?? "findings";
  return {
    view,
    finding: words.get("finding"),
    filter: {
      text: words.get("text") ?? "",
      kind: words.get("kind") ?? "",
      rank: words.get("rank") ?? "",
      file: words.get("file") ?? "",
      notes: words.get("notes") === "1",
      suppressed: words.get("suppressed") === "1",
    },
  };
}

export function routeHash(route: Route): string {
  const words = new URLSearchParams();
  if (route.view !== "findings") words.set("view", route.view);
  if (route.finding !== null) words.set("finding", route.finding);
  const { text, kind, rank, file, notes, suppressed } = route.filter;
  for (const [key, value] of Object.entries({ kind, rank, file, text })) if (value !== "") words.set(key, value);
  if (notes) words.set("notes", "1");
  if (suppressed) words.set("suppressed", "1");
  const text_ = words.toString();
  return text_ === "" ? "" : `#${text_}`;
}

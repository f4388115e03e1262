import { useCallback, useEffect, useMemo, useState } from "preact/hooks";
import { entriesOf, filtered, type Entry } from "../model/filter";
import { firstFailure, type First } from "../model/first";
import { failedProcess } from "../model/processes";
import type { Head } from "../model/report";
import { parseRoute, routeHash, VIEWS, type Route } from "../model/route";
import { Boundary } from "./Boundary";
import { Findings } from "./Findings";
import { Header } from "./Header";
import { Help } from "./Help";
import { MemoryView } from "./MemoryView";
import { OperatorsView } from "./OperatorsView";
import { RunView } from "./RunView";
import { TimelineView } from "./TimelineView";
import { useFindingFocus } from "./useFindingFocus";
import { useKeys } from "./useKeys";
import { useTheme } from "./useTheme";

function useRoute(): [Route, (route: Route, remember?: boolean) => void] {
  const [route, set] = useState(() => parseRoute(location.hash));
  useEffect(() => {
    const onHash = () => set(parseRoute(location.hash));
    window.addEventListener("hashchange", onHash);
    return () => window.removeEventListener("hashchange", onHash);
  }, []);
  // Typing into a filter makes no new entry in the browser's history.
  const go = useCallback((next: Route, remember = true) => {
    if (remember) location.hash = routeHash(next);
    else history.replaceState(null, "", routeHash(next) || location.pathname);
    set(next);
  }, []);
  return [route, go];
}

// What failed first, else the first one in the list.
function startingEntry(shown: Entry[], first: First | null): Entry | null {
  return shown.find((entry) => entry.finding === first?.finding) ?? shown[0] ?? null;
}

export function App({ data }: { data: Head }) {
  const { report, beside } = data;
  const [route, go] = useRoute();
  const [theme, changeTheme] = useTheme();
  const [help, setHelp] = useState(false);
  const entries = useMemo(() => entriesOf(report, beside.headlines), [report, beside]);
  const first = useMemo(() => firstFailure(report), [report]);
  const failed = useMemo(() => failedProcess(report.run.processes, first), [report, first]);
  const shown = useMemo(() => filtered(entries, route.filter), [entries, route.filter]);
  const linked = entries.find((entry) => entry.key === route.finding);
  const chosen = linked ?? startingEntry(shown, first);

  const focusNext = useFindingFocus(route.finding);
  const choose = (key: string | undefined) => {
    if (key === undefined) return;
    focusNext();
    go({ ...route, view: "findings", finding: key });
  };
  const move = (by: number) => {
    const index = shown.findIndex((entry) => entry === chosen);
    choose(shown[Math.min(shown.length - 1, Math.max(0, index + by))]?.key);
  };
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    f: () => choose(first?.finding?.id),
    n: () => go({ ...route, filter: { ...route.filter, notes: !route.filter.notes } }, false),
    t: changeTheme,
    c: () => document.querySelector<HTMLButtonElement>("[data-copy=main]")?.click(),
    "/": () => document.getElementById("search")?.focus(),
    "?": () => setHelp(true),
    ...Object.fromEntries(VIEWS.map((view, i) => [`${i + 1}`, () => go({ ...route, view })])),
  });

  return (
    <>
      <Header
        report={report} view={route.view} theme={theme} changeTheme={changeTheme} showHelp={() => setHelp(true)}
        link={(view) => routeHash({ ...route, view }) || "#"}
      />
      <main>
        <Boundary key={route.view} what="This view">
          {route.view === "findings" && (
            <Findings
              entries={entries} shown={shown} chosen={chosen} unknown={route.finding !== null && !linked} first={first} report={report}
              beside={beside} filter={route.filter}
              changeFilter={(filter) => go({ ...route, filter }, false)}
              link={(key) => routeHash({ ...route, view: "findings", finding: key })}
            />
          )}
          {route.view === "timeline" && <TimelineView report={report} failed={failed} />}
          {route.view === "memory" && <MemoryView report={report} beside={beside} failed={failed} />}
          {route.view === "operators" && <OperatorsView report={report} failed={failed} />}
          {route.view === "run" && <RunView report={report} />}
        </Boundary>
      </main>
      {help && <Help close={() => setHelp(false)} />}
    </>
  );
}

import { clockText, counted, ranksText, secondsText } from "../model/format";
import type { Report } from "../model/report";
import { VIEWS, type View } from "../model/route";
import { print } from "./usePrinting";
import type { Theme } from "./useTheme";

const TITLES: Record<View, string> = {
  findings: "Findings",
  timeline: "Timeline",
  memory: "Memory",
  operators: "Last operators",
  run: "Run",
};

interface Properties {
  report: Report;
  view: View;
  link: (view: View) => string;
  theme: Theme;
  changeTheme: () => void;
  showHelp: () => void;
}

function summary(report: Report): string {
  const { run, findings } = report;
  const ranks = run.processes.flatMap(({ rank }) => (rank === null ? [] : [rank]));
  const seconds = run.start !== null && run.end !== null ? (Date.parse(run.end) - Date.parse(run.start)) / 1000 : null;
  const errors = findings.filter((finding) => finding.severity === "error").length;
  const warnings = findings.filter((finding) => finding.severity === "warning").length;
  return [
    counted(errors, "error"),
    warnings > 0 ? counted(warnings, "warning") : "",
    ranksText([...new Set(ranks)]),
    counted(run.steps, "step"),
    seconds === null ? "" : secondsText(seconds),
    run.start === null ? "" : clockText(`${run.start.slice(0, 16)}Z`),
  ].filter((word) => word !== "").join(" · ");
}

export function Header({ report, view, link, theme, changeTheme, showHelp }: Properties) {
  return (
    <header class="top">
      <div class="title">
        <h1>devsan</h1>
        <div class="about">
          <code class="command" title={report.run.command ?? ""}>{report.run.command ?? "unknown command"}</code>
          <span class="faint">{summary(report)}</span>
        </div>
        <div class="buttons">
          <button type="button" onClick={changeTheme} aria-label={`Colors: ${theme}. Change`}>{theme === "system" ? "Auto" : theme === "light" ? "Light" : "Dark"}</button>
          <button type="button" onClick={print} class="print">Print</button>
          <button type="button" onClick={showHelp} aria-label="Keys">?</button>
        </div>
      </div>
      <nav aria-label="Views" class="views">
        {VIEWS.map((name) => (
          <a key={name} href={link(name)} aria-current={name === view ? "page" : undefined}>{TITLES[name]}</a>
        ))}
      </nav>
      {report.damage.length > 0 && (
        <p class="notice">Parts of the traces could not be read: <a href={link("run")}>what is missing</a>.</p>
      )}
    </header>
  );
}

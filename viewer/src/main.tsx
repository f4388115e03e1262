import { render } from "preact";
import { head } from "./model/parts";
import "./styles/page.css";
import "./styles/finding.css";
import "./styles/code.css";
import "./styles/charts.css";
import "./styles/print.css";
import { App } from "./views/App";

const page = document.getElementById("page") as HTMLElement;
try {
  const data = head();
  document.title = `devsan: ${data.report.run.command ?? "report"}`;
  page.replaceChildren();
  render(<App data={data} />, page);
} catch (error) {
  page.textContent = `This report cannot be shown: ${String(error)}`;
}

// Traces of one or several processes, in every format.
#include <nlohmann/json.hpp>

#include "report/render/page_data.h"
#include "report/render/render_candidates.h"
#include "report/render/render_facts.h"
#include "report/render/render_json.h"
#include "report/render/render_markdown.h"
#include "report/render/render_page.h"
#include "report/render/render_perfetto.h"
#include "report/render/render_sarif.h"
#include "report/render/render_terminal.h"
#include "report/render/summary.h"
#include "target.h"

namespace {

using namespace devsan;
using fuzz::require;

void show_as_json(const report::Reading& reading, const report::FactsOfRun& facts) {
  const report::Report& report = reading.report;
  require(nlohmann::json::accept(render_json(report)), "the report is JSON");
  require(nlohmann::json::accept(render_sarif(report, "/srv")), "SARIF is JSON");
  require(nlohmann::json::accept(render_perfetto(report)), "a trace for Perfetto is JSON");
  require(nlohmann::json::accept(render_facts(facts, reading.sources)), "facts are JSON");
  require(nlohmann::json::accept(render_candidates(report, reading.sources)), "candidates are JSON");
}

void show_as_text(const report::Reading& reading) {
  const report::Report& report = reading.report;
  for (const bool all : {false, true}) {
    require(!render_terminal(report, {all, 60}, {all, all, all}).empty(), "there is a text for the terminal");
    require(!summary(report, {all, 80}).empty(), "there is a summary");
    require(!render_markdown(report, {all, all}).empty(), "there is a text in Markdown");
  }
  require(render_page(report, reading.sources).size() >= report::kPage.size() / 2, "the page is whole");
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  report::FactsOfRun facts;
  const report::Reading reading = fuzz::read_packed({data, size}, &facts);
  show_as_json(reading, facts);
  show_as_text(reading);
  return 0;
}

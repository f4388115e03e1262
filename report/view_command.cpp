#include "report/view_command.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "report/findings/collect.h"
#include "report/render/render_candidates.h"
#include "report/render/render_facts.h"
#include "report/render/render_json.h"
#include "report/render/render_markdown.h"
#include "report/render/render_page.h"
#include "report/render/render_perfetto.h"
#include "report/render/render_sarif.h"
#include "report/render/render_terminal.h"

namespace devsan::report {
namespace {

namespace fs = std::filesystem;

struct Format {
  Output ViewOptions::*output;
  std::string (*rendered)(const Reading& reading, const FactsOfRun& facts, const ViewOptions& options);
};

// In the place of the report in the terminal.
const std::vector<Format>& formats() {
  static const std::vector<Format> kFormats = {
      {&ViewOptions::json,
       [](const Reading& reading, const FactsOfRun&, const ViewOptions&) { return render_json(reading.report); }},
      {&ViewOptions::facts, [](const Reading& reading, const FactsOfRun& facts,
                               const ViewOptions&) { return render_facts(facts, reading.sources); }},
      {&ViewOptions::candidates, [](const Reading& reading, const FactsOfRun&,
                                    const ViewOptions&) { return render_candidates(reading.report, reading.sources); }},
      {&ViewOptions::html, [](const Reading& reading, const FactsOfRun&,
                              const ViewOptions&) { return render_page(reading.report, reading.sources); }},
      {&ViewOptions::sarif,
       [](const Reading& reading, const FactsOfRun&, const ViewOptions&) {
         std::error_code error;
         return render_sarif(reading.report, fs::current_path(error));
       }},
      {&ViewOptions::markdown,
       [](const Reading& reading, const FactsOfRun&, const ViewOptions& options) {
         return render_markdown(reading.report, {options.notes, options.suppressed});
       }},
      {&ViewOptions::perfetto,
       [](const Reading& reading, const FactsOfRun&, const ViewOptions&) { return render_perfetto(reading.report); }},
  };
  return kFormats;
}

// `--json` and its like take a file or none, so that in `view --json DIR` the directory looks like that file. A trace
// or a directory is never written to: it is meant to be read.
void give_back_path(std::string& written, std::vector<fs::path>& paths) {
  std::error_code error;
  const fs::path file = written;
  if (!file.empty() && (paths.empty() || file.extension() == ".devsan" || fs::is_directory(file, error))) {
    paths.insert(paths.begin(), file);
    written.clear();
  }
}

bool write_all(const Reading& reading, const FactsOfRun& facts, const ViewOptions& options) {
  bool written = true;
  bool any = false;
  for (const Format& format : formats()) {
    const Output& output = options.*format.output;
    if (!output.wanted) continue;
    any = true;
    written = write_out(format.rendered(reading, facts, options), output.file) && written;
  }
  if (any) return written;
  const Shown shown{options.notes, options.suppressed, options.memory};
  return write_out(render_terminal(reading.report, style_of(options.colour), shown), "");
}

}  // namespace

int view(const ViewOptions& given) {
  ViewOptions options = given;
  for (const Format& format : formats()) give_back_path((options.*format.output).file, options.paths);
  SuppressionFile suppressions;
  if (options.suppressions) suppressions = read_suppression_file(*options.suppressions);
  for (const std::string& complaint : suppressions.complaints) complain(complaint);
  if (!suppressions.complaints.empty()) return 2;
  rules::RulesFile rules;
  if (options.rules) rules = rules::read_rules(*options.rules);
  for (const rules::Complaint& complaint : rules.complaints) complain(complaint.sentence());
  if (!rules.complaints.empty()) return 2;
  FactsOfRun facts;
  const Reading reading = read_traces(options.paths, options.suppressions ? &suppressions.entries : nullptr,
                                      options.all_runs ? RunsRead::all : RunsRead::newest,
                                      options.facts.wanted ? &facts : nullptr, {options.rules ? &rules : nullptr});
  for (const std::string& complaint : reading.complaints) complain(complaint);
  const Report& report = reading.report;
  if (reading.readable == 0) {
    for (const Damage& damage : report.damage) complain(damage.file + ": " + damage.reason);
    if (options.json.wanted && !report.damage.empty()) write_out(render_json(report), options.json.file);
    return 1;
  }
  return write_all(reading, facts, options) ? 0 : 1;
}

namespace {

// Which formats the command line asks for, by the options that name their files.
using OutputOptions = std::vector<std::pair<const CLI::Option*, Output ViewOptions::*>>;

OutputOptions add_outputs(CLI::App& command, ViewOptions& options) {
  OutputOptions outputs;
  const auto add = [&](const char* name, Output ViewOptions::*output, bool file_may_lack, const char* help) {
    CLI::Option* option = command.add_option(name, (options.*output).file, help);
    option->expected(file_may_lack ? 0 : 1, 1)->type_name(file_may_lack ? "[FILE]" : "FILE");
    outputs.emplace_back(option, output);
    return option;
  };
  add("--json", &ViewOptions::json, true, "print the report as JSON, or write it to FILE");
  add("--markdown", &ViewOptions::markdown, true,
      "print the report as Markdown for an issue, without secrets and home directories, or write it to FILE");
  add("--html", &ViewOptions::html, false, "write the report as one page for a browser");
  add("--sarif", &ViewOptions::sarif, false, "write the findings as SARIF 2.1.0, for code hosts and editors");
  add("--perfetto", &ViewOptions::perfetto, false, "write the run as a trace for ui.perfetto.dev");
  add("--facts", &ViewOptions::facts, true, "print what was recorded around each finding as JSON, or write it to FILE");
  // For those who fit the ranking: no option that a user needs.
  add("--candidates", &ViewOptions::candidates, true, "")->group("");
  return outputs;
}

void note_outputs(const OutputOptions& outputs, ViewOptions& options) {
  bool any_file = false;
  std::vector<const CLI::Option*> printed;
  for (const auto& [option, output] : outputs) {
    Output& one = options.*output;
    one.wanted = option->count() > 0;
    any_file = any_file || !one.file.empty();
    if (one.wanted && (one.file.empty() || one.file == "-")) printed.push_back(option);
  }
  if (printed.size() > 1) throw CLI::ExcludesError(printed[1]->get_name(), printed[0]->get_name());
  if (options.paths.empty() && !any_file) throw CLI::RequiredError("traces: DIR or FILE");
}

}  // namespace

CLI::App* add_view_command(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand("view", "Show the findings of a run, and how each process ended");
  const auto options = std::make_shared<ViewOptions>();
  auto* paths = command->add_option("traces", options->paths, "directories of trace files, or single trace files");
  paths->type_name("DIR|FILE");
  const OutputOptions outputs = add_outputs(*command, *options);
  command->add_flag("--notes", options->notes, "also show notes: what PyTorch allows, such as mixed devices");
  command->add_option("--suppressions", options->suppressions, "use this file of suppressions instead of the run's own")
      ->type_name("FILE");
  command->add_option("--rules", options->rules, "use this file of rules instead of the run's own")->type_name("FILE");
  command->add_flag("--suppressed", options->suppressed, "also show suppressed findings");
  command->add_flag("--memory", options->memory, "show the memory of each process over time");
  command->add_flag("--all-runs", options->all_runs, "show all runs in a directory, not just the newest");
  add_colour_option(*command, options->colour);
  command->callback([options, outputs, &exit_status] {
    note_outputs(outputs, *options);
    exit_status = view(*options);
  });
  return command;
}

}  // namespace devsan::report

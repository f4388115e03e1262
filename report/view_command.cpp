#include "report/view_command.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>

#include "report/findings/collect.h"
#include "report/render/render_candidates.h"
#include "report/render/render_facts.h"
#include "report/render/render_json.h"
#include "report/render/render_terminal.h"

namespace devsan::report {
namespace {

namespace fs = std::filesystem;

void complain(const std::string& text) {
  std::cerr << "devsan: " << text << "\n";
}

bool write_out(const std::string& text, const std::string& file) {
  errno = 0;
  if (file.empty() || file == "-") {
    std::cout << text << std::flush;
    if (std::cout) return true;
    complain(std::string("cannot write the report: ") + std::strerror(errno));
    return false;
  }
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << text << std::flush;
  if (out) return true;
  complain("cannot write " + file + ": " + std::strerror(errno));
  return false;
}

Style style_of(Colour colour) {
  Style style = style_for(STDOUT_FILENO);
  switch (colour) {
    case Colour::automatic:
      break;
    case Colour::always:
      style.colour = true;
      break;
    case Colour::never:
      style.colour = false;
      break;
  }
  return style;
}

// `--json` and `--facts` take a file or none, so that in `view --json DIR` the directory looks like that file. A trace
// or a directory is never written to: it is meant to be read.
void give_back_path(std::string& written, std::vector<fs::path>& paths) {
  std::error_code error;
  const fs::path file = written;
  if (!file.empty() && (paths.empty() || file.extension() == ".devsan" || fs::is_directory(file, error))) {
    paths.insert(paths.begin(), file);
    written.clear();
  }
}

std::string rendered(const Reading& reading, const FactsOfRun& facts, const ViewOptions& options) {
  const Report& report = reading.report;
  if (options.facts) return render_facts(facts, reading.sources);
  if (options.candidates) return render_candidates(report, reading.sources);
  if (options.json) return render_json(report);
  return render_terminal(report, style_of(options.colour), {options.notes, options.suppressed, options.memory});
}

}  // namespace

int view(const ViewOptions& given) {
  ViewOptions options = given;
  give_back_path(options.json_file, options.paths);
  give_back_path(options.facts_file, options.paths);
  give_back_path(options.candidates_file, options.paths);
  SuppressionFile suppressions;
  if (options.suppressions) suppressions = read_suppression_file(*options.suppressions);
  for (const std::string& complaint : suppressions.complaints) complain(complaint);
  if (!suppressions.complaints.empty()) return 2;
  FactsOfRun facts;
  const Reading reading =
      read_traces(options.paths, options.suppressions ? &suppressions.entries : nullptr,
                  options.all_runs ? RunsRead::all : RunsRead::newest, options.facts ? &facts : nullptr);
  for (const std::string& complaint : reading.complaints) complain(complaint);
  const Report& report = reading.report;
  if (reading.readable == 0) {
    for (const Damage& damage : report.damage) complain(damage.file + ": " + damage.reason);
    if (options.json && !report.damage.empty()) write_out(render_json(report), options.json_file);
    return 1;
  }
  const std::string& file = options.facts        ? options.facts_file
                            : options.candidates ? options.candidates_file
                                                 : options.json_file;
  return write_out(rendered(reading, facts, options), file) ? 0 : 1;
}

CLI::App* add_view_command(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand("view", "Show the findings of a run, and how each process ended");
  const auto options = std::make_shared<ViewOptions>();
  auto* paths = command->add_option("traces", options->paths, "directories of trace files, or single trace files");
  paths->type_name("DIR|FILE");
  auto* json = command->add_option("--json", options->json_file, "print the report as JSON, or write it to FILE");
  json->expected(0, 1)->type_name("[FILE]");
  auto* facts = command->add_option("--facts", options->facts_file,
                                    "print what was recorded around each finding as JSON, or write it to FILE");
  facts->expected(0, 1)->type_name("[FILE]");
  // For those who fit the ranking: no option that a user needs.
  auto* candidates = command->add_option("--candidates", options->candidates_file, "")->expected(0, 1)->group("");
  command->add_flag("--notes", options->notes, "also show notes: what PyTorch allows, such as mixed devices");
  command->add_option("--suppressions", options->suppressions, "use this file of suppressions instead of the run's own")
      ->type_name("FILE");
  command->add_flag("--suppressed", options->suppressed, "also show suppressed findings");
  command->add_flag("--memory", options->memory, "show the memory of each process over time");
  command->add_flag("--all-runs", options->all_runs, "show all runs in a directory, not just the newest");
  const std::map<std::string, Colour> colours = {
      {"auto", Colour::automatic}, {"always", Colour::always}, {"never", Colour::never}};
  command
      ->add_option("--color", options->colour,
                   "when to use color: auto, always or never (auto: on a terminal, unless NO_COLOR is set)")
      ->transform(CLI::CheckedTransformer(colours))
      ->option_text("WHEN");
  command->callback([options, json, facts, candidates, &exit_status] {
    options->json = json->count() > 0;
    options->facts = facts->count() > 0;
    options->candidates = candidates->count() > 0;
    if (options->json && options->facts) throw CLI::ExcludesError("--facts", "--json");
    if (options->paths.empty() && options->json_file.empty() && options->facts_file.empty() &&
        options->candidates_file.empty())
      throw CLI::RequiredError("traces: DIR or FILE");
    exit_status = view(*options);
  });
  return command;
}

}  // namespace devsan::report

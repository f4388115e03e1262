#include "report/diff_command.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <optional>

#include "report/command_output.h"
#include "report/findings/collect.h"
#include "report/findings/read_report.h"
#include "report/render/render_diff.h"

namespace devsan::report {
namespace {

constexpr int kSame = 0;
constexpr int kNews = 1;
constexpr int kTrouble = 2;

struct DiffOptions {
  std::filesystem::path before;
  std::filesystem::path after;
  bool json = false;
  std::string json_file;
  bool notes = false;
  Colour colour = Colour::automatic;
};

// Nothing where no trace of it could be read, which it says.
std::optional<Report> report_of_run(const std::filesystem::path& path) {
  if (is_json(path)) {
    auto read = read_report(path);
    if (auto* report = std::get_if<Report>(&read)) return std::move(*report);
    complain(std::get<std::string>(read));
    return std::nullopt;
  }
  const std::filesystem::path paths[] = {path};
  Reading reading = read_traces(paths);
  for (const std::string& complaint : reading.complaints) complain(complaint);
  for (const Damage& damage : reading.report.damage) complain(damage.file + ": " + damage.reason);
  if (reading.readable == 0) return std::nullopt;
  return std::move(reading.report);
}

std::vector<const Finding*> compared(const Report& report, bool notes) {
  std::vector<const Finding*> findings;
  for (const Finding& finding : report.findings) {
    if (notes || finding.severity != Severity::note) findings.push_back(&finding);
  }
  return findings;
}

int diff(const DiffOptions& options) {
  const std::optional<Report> before = report_of_run(options.before);
  const std::optional<Report> after = report_of_run(options.after);
  if (!before || !after) return kTrouble;
  const Comparison comparison = compare(compared(*before, options.notes), compared(*after, options.notes));
  const std::string text = options.json ? render_diff_json(comparison, before->run, after->run)
                                        : render_diff(comparison, style_of(options.colour));
  if (!write_out(text, options.json_file)) return kTrouble;
  return comparison.has_news() ? kNews : kSame;
}

}  // namespace

CLI::App* add_diff_command(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand("diff", "Compare the findings of two runs: what is new, gone, the same");
  const auto options = std::make_shared<DiffOptions>();
  command->add_option("before", options->before, "a directory of traces, a trace, or a report written by view --json")
      ->type_name("RUN_A")
      ->required();
  command->add_option("after", options->after, "the run that is compared with it")->type_name("RUN_B")->required();
  auto* json = command->add_option("--json", options->json_file, "print the comparison as JSON, or write it to FILE");
  json->expected(0, 1)->type_name("[FILE]");
  command->add_flag("--notes", options->notes, "also compare notes");
  add_colour_option(*command, options->colour);
  command->footer("The exit status is 0 if RUN_B has nothing new, 1 if it has, and 2 if a run cannot be read.");
  command->callback([options, json, &exit_status] {
    options->json = json->count() > 0;
    exit_status = diff(*options);
  });
  return command;
}

}  // namespace devsan::report

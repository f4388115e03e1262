#include "report/rules_command.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "report/command_output.h"
#include "report/findings/collect.h"
#include "report/learn.h"
#include "rules/rules_file.h"

namespace devsan::report {
namespace {

namespace fs = std::filesystem;

constexpr int kDiffers = 1;
constexpr int kWrong = 2;

// Says what is wrong; false if something is.
bool read_sound(const std::string& path, rules::RulesFile& file) {
  file = rules::read_rules(path);
  for (const rules::Complaint& complaint : file.complaints) complain(complaint.sentence());
  return file.complaints.empty();
}

int check_rules(const std::string& path) {
  rules::RulesFile file;
  if (!read_sound(path, file)) return kWrong;
  const std::size_t count = file.rules.size();
  std::cout << path << ": " << count << (count == 1 ? " rule" : " rules") << ", nothing is wrong\n";
  return 0;
}

int compile_rules(const std::string& path) {
  rules::RulesFile file;
  if (!read_sound(path, file)) return kWrong;
  std::error_code error;
  const fs::path whole = fs::absolute(path, error);
  std::cout << rules::compiled(file, error ? fs::path(path) : whole) << std::flush;
  return std::cout ? 0 : kDiffers;
}

// A rule in one line, with the ranks and steps it applies to.
std::string line_of(const rules::Rule& rule) {
  std::string text = rule.sentence;
  const auto add = [&](std::string_view name, const rules::Spans& spans) {
    if (!spans.empty()) text += " (" + std::string(name) + " " + rules::format_spans(spans) + ")";
  };
  add("ranks", rule.ranks);
  add("local ranks", rule.local_ranks);
  add("world size", rule.world_sizes);
  add("steps", rule.steps);
  return text;
}

std::vector<std::string> lines_of(const rules::RulesFile& file) {
  std::vector<std::string> lines;
  for (const rules::Rule& rule : file.rules) lines.push_back(line_of(rule));
  for (const std::string& name : file.off) lines.push_back("off: " + name);
  return lines;
}

int compare_rules(const std::string& one, const std::string& other) {
  rules::RulesFile before;
  rules::RulesFile after;
  const bool sound = read_sound(one, before);
  if (!read_sound(other, after) || !sound) return kWrong;
  const std::vector<std::string> old_lines = lines_of(before);
  const std::vector<std::string> new_lines = lines_of(after);
  const std::set<std::string> had(old_lines.begin(), old_lines.end());
  const std::set<std::string> has(new_lines.begin(), new_lines.end());
  bool differs = false;
  for (const std::string& line : old_lines) {
    if (has.contains(line)) continue;
    std::cout << "- " << line << '\n';
    differs = true;
  }
  for (const std::string& line : new_lines) {
    if (had.contains(line)) continue;
    std::cout << "+ " << line << '\n';
    differs = true;
  }
  return differs ? kDiffers : 0;
}

int learn_rules(const std::vector<fs::path>& paths) {
  Learner learner;
  ReadingAids aids;
  aids.visit = [&learner](const trace::TraceFile& trace) { learner.add(trace); };
  const Reading reading = read_traces(paths, nullptr, RunsRead::newest, nullptr, aids);
  for (const std::string& complaint : reading.complaints) complain(complaint);
  if (reading.readable == 0) return kDiffers;
  if (!learner.saw_placements()) {
    complain("these traces do not say where tensors were: no model was seen");
    return kDiffers;
  }
  std::cout << learner.rules(reading.report) << std::flush;
  return std::cout ? 0 : kDiffers;
}

struct RulesWords {
  std::string action;
  std::vector<std::string> files;
};

int run_rules(const RulesWords& words) {
  const std::size_t wanted = words.action == "diff" ? 2 : 1;
  if (words.files.size() != wanted) {
    throw CLI::ValidationError(words.action, wanted == 2 ? "compares two files" : "takes one file");
  }
  if (words.action == "check") return check_rules(words.files[0]);
  return words.action == "compile" ? compile_rules(words.files[0]) : compare_rules(words.files[0], words.files[1]);
}

}  // namespace

RulesCommands add_rules_commands(CLI::App& app, int& exit_status) {
  CLI::App* rules = app.add_subcommand("rules", "Check a file of rules, compile it for a process, or compare two");
  const auto words = std::make_shared<RulesWords>();
  rules->add_option("action", words->action, "check, compile or diff")
      ->required()
      ->check(CLI::IsMember(std::vector<std::string>{"check", "compile", "diff"}))
      ->type_name("ACTION");
  rules->add_option("files", words->files, "the file of rules; two of them for diff")->required()->type_name("FILE");
  rules->callback([words, &exit_status] { exit_status = run_rules(*words); });

  CLI::App* learned = app.add_subcommand("learn", "Print the rules that a run kept");
  const auto paths = std::make_shared<std::vector<fs::path>>();
  learned->add_option("traces", *paths, "directories of trace files, or single trace files")
      ->required()
      ->type_name("DIR|FILE");
  learned->callback([paths, &exit_status] { exit_status = learn_rules(*paths); });
  return {rules, learned};
}

}  // namespace devsan::report

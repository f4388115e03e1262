#include "launch/doctor_command.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <map>

#include "doctor/render_json.h"
#include "launch/doctor_terminal.h"
#include "report/command_output.h"

namespace devsan::launch {
namespace {

// Fewer parameters than a model has whose memory anybody works out, and more than the largest one has.
constexpr double kFewestParams = 1e4;
constexpr double kMostParams = 1e14;

// What a number of parameters that no model has was likely meant to be: "7" for 7B, "7000000000B" for 7000000000.
std::string meant_count(const std::string& text, double value, bool has_unit) {
  if (value > 0 && value < kFewestParams && !has_unit) return text + "B";
  if (has_unit && value >= kFewestParams && value <= kMostParams) return text.substr(0, text.size() - 1);
  return {};
}

// "7e9", "7000000000", "7B" and "350M" as a count.
std::string as_count(std::string text) {
  const std::map<char, double> units = {{'K', 1e3}, {'k', 1e3}, {'M', 1e6},  {'m', 1e6},
                                        {'B', 1e9}, {'b', 1e9}, {'T', 1e12}, {'t', 1e12}};
  const auto unit = text.empty() ? units.end() : units.find(text.back());
  const std::string digits = unit == units.end() ? text : text.substr(0, text.size() - 1);
  char* end = nullptr;
  const double value = std::strtod(digits.c_str(), &end);
  if (digits.empty() || *end != '\0' || !(value > 0)) {
    throw CLI::ValidationError("'" + text + "' is not a number such as 7B, 350M or 7000000000");
  }
  const double count = value * (unit == units.end() ? 1 : unit->second);
  if (count >= kFewestParams && count <= kMostParams) return std::to_string(static_cast<std::uint64_t>(count));
  const std::string meant = meant_count(text, value, unit != units.end());
  throw CLI::ValidationError("no model has " + text + " parameters" +
                             (meant.empty() ? std::string() : "; did you mean " + meant + "?"));
}

}  // namespace

void add_doctor_options(CLI::App& command, DoctorRequest& request) {
  DoctorFlags& flags = request.flags;
  command.add_option("--deepspeed", flags.deepspeed, "also check this DeepSpeed config (JSON)")->option_text("FILE");
  command.add_option("--accelerate", flags.accelerate, "also check this accelerate config (YAML or JSON)")
      ->option_text("FILE");
  command
      .add_option("--params", flags.plan.params,
                  "how many parameters the model has, such as 7B, to work out its memory")
      ->transform(as_count)
      ->option_text("N");
  command
      .add_option("--world-size", flags.plan.world_size, "how many processes train (default: by the accelerate config)")
      ->check(CLI::PositiveNumber)
      ->option_text("N");
  command
      .add_option("--gpus-per-node", flags.plan.gpus_per_node, "how many of them on a node (default: by this machine)")
      ->check(CLI::PositiveNumber)
      ->option_text("N");
  command.add_option("--python", flags.python, "check the torch and the packages of this Python (default: python3)")
      ->option_text("PY");
  auto* json = command.add_option("--json", request.json_file, "print the result as JSON, or write it to FILE");
  json->expected(0, 1)->type_name("[FILE]");
  report::add_colour_option(command, request.colour);
  command.footer("The exit status is 1 if there is an error, and 0 if there are warnings at most.");
  command.parse_complete_callback([&request, json] { request.json = json->count() > 0; });
}

int doctor_command(const DoctorRequest& request, const std::string& version) {
  const doctor::Facts facts = gather_facts(request.flags);
  const doctor::Diagnosis diagnosis = doctor::diagnose(facts);
  const std::string text = request.json ? doctor::render_json(facts, diagnosis, version)
                                        : render_diagnosis(diagnosis, report::style_of(request.colour));
  if (!report::write_out(text, request.json ? request.json_file : "")) return 1;
  return diagnosis.count(doctor::Level::error) > 0 ? 1 : 0;
}

}  // namespace devsan::launch

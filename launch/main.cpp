// The command `devsan`. Every subcommand is a function elsewhere; here are their options and what their errors become.
#include <signal.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "devsan_version.h"
#include "doctor/near_miss.h"
#include "launch/build.h"
#include "launch/command_line.h"
#include "launch/doctor_command.h"
#include "launch/fail_on.h"
#include "launch/help.h"
#include "launch/hooks.h"
#include "launch/installation.h"
#include "launch/jobs.h"
#include "launch/messages.h"
#include "launch/preflight.h"
#include "launch/preflight_command.h"
#include "launch/reference.h"
#include "launch/run.h"
#include "report/collect_command.h"
#include "report/diff_command.h"
#include "report/rules_command.h"
#include "report/view_command.h"

namespace devsan::launch {
namespace {

constexpr char kVersion[] = "devsan " DEVSAN_VERSION;
constexpr char kVersionHelp[] = "print the version and exit";

// The help of an option of traced processes, for the flag that sets it.
std::string option_help(std::string_view name) {
#define DEVSAN_OPTION(type, option, default_value, help) \
  if (name == #option) return help;
#include "trace/options.def"
#undef DEVSAN_OPTION
  return {};
}

// The same, where the flag stands for the value 1: "1 to write nothing" is "write nothing".
std::string flag_help(std::string_view name) {
  constexpr std::string_view kValue = "1 to ";
  const std::string text = option_help(name);
  return text.starts_with(kValue) ? text.substr(kValue.size()) : text;
}

class CommandLine {
 public:
  CommandLine() {
    app_.require_subcommand(0, 1);
    app_.formatter(std::make_shared<HelpFormatter>());
    app_.set_help_flag("-h,--help", "print this help and exit");
    app_.set_version_flag(
        "--version", [] { return std::string(kVersion) + "\n" + describe_hooks(); }, kVersionHelp);
    add_run();
    add_preflight();
    report::add_view_command(app_, view_status_)->set_version_flag("--version", kVersion, kVersionHelp);
    report::add_diff_command(app_, view_status_)->set_version_flag("--version", kVersion, kVersionHelp);
    report::add_collect_command(app_, view_status_)->set_version_flag("--version", kVersion, kVersionHelp);
    add_doctor();
    const report::RulesCommands rules = report::add_rules_commands(app_, view_status_);
    for (CLI::App* command : {rules.rules, rules.learn}) command->set_version_flag("--version", kVersion, kVersionHelp);
    add_build();
    add_lib();
    add_write_reference();
  }

  int execute(int count, char** words) {
    std::vector<std::string> arguments(words + 1, words + count);
    if (!arguments.empty() && arguments[0] == "run") request_.command = take_command(*run_, arguments);
    if (!arguments.empty() && arguments[0] == "preflight") {
      preflight_request_.command = take_command(*preflight_, arguments);
    }
    std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
    try {
      app_.parse(std::move(arguments));
    } catch (const CLI::Success& asked) {  // --help, --version
      return app_.exit(asked);
    } catch (const CLI::ExtrasError&) {
      throw UsageError(about_extras());
    } catch (const CLI::ParseError& error) {
      throw UsageError(prefix_of_chosen() + error.what());
    }
    if (app_.get_subcommands().empty()) {
      std::cerr << app_.help();
      return kUsageStatus;
    }
    return action_ ? action_() : view_status_;
  }

 private:
  CLI::App* add_command(const std::string& name, const std::string& help, std::function<int()> action) {
    CLI::App* command = app_.add_subcommand(name, help);
    command->set_version_flag("--version", kVersion, kVersionHelp);
    command->callback([this, action = std::move(action)] { action_ = action; });
    return command;
  }

  void add_run() {
    run_ = add_command("run", "Run a command and its child processes under devsan", [this] { return run(); });
    run_->add_option("--sim", request_.flags.sim, option_help("sim"))
        ->check(CLI::Range(0, kMaxSimulatedDevices))
        ->option_text("N");
    run_->add_option("--sim-memory", request_.flags.sim_memory, option_help("sim_memory"))->option_text("SIZE");
    run_->add_flag("--sim-late-copies", request_.flags.sim_late_copies, flag_help("sim_late_copies"));
    run_->add_flag("--sim-guard", request_.flags.sim_guard, flag_help("sim_guard"));
    run_->add_option("--out", request_.flags.out, option_help("out"))->option_text("DIR");
    run_->add_option("--fail-on", fail_on_,
                     "exit with 66 if the command exits with 0 but has such findings: any, error, warning, or a "
                     "comma-separated list of kinds")
        ->option_text("KINDS");
    run_->add_flag("--halt", request_.flags.halt, flag_help("halt"));
    run_->add_option("--hang-after", request_.flags.hang_after, option_help("hang_after"))
        ->check(CLI::NonNegativeNumber)
        ->option_text("SECONDS");
    run_->add_option("--suppressions", request_.flags.suppressions, option_help("suppressions"))->option_text("FILE");
    run_->add_option("--rules", request_.flags.rules, kRulesHelp)->option_text("FILE");
    run_->add_flag("--quiet", request_.flags.quiet, flag_help("quiet"));
    run_->footer("The exit status is that of the command, 128 + N if signal N ended it, and 127 if it was not found.");
  }

  void add_doctor() {
    CLI::App* command = add_command("doctor", "Check driver, torch, packages, limits and configs before a run",
                                    [this] { return doctor_command(doctor_, DEVSAN_VERSION); });
    add_doctor_options(*command, doctor_);
  }

  void add_preflight() {
    preflight_ = add_command("preflight", "Run a few steps on simulated devices, and give a verdict",
                             [this] { return preflight(); });
    add_preflight_options(*preflight_, preflight_request_);
  }

  void add_build() {
    CLI::App* build = add_command("build", "Compile the hooks for the torch of a Python, and print their path",
                                  [this] { return build_command(build_flags_); });
    build->add_option("--python", build_flags_.python, "use the torch of this Python (default: python3)")
        ->option_text("PY");
    build->add_flag("--sim", build_flags_.simulation, "also compile the simulated devices");
    build->add_flag("--force", build_flags_.force, "compile again even if the hooks are cached");
    CLI::Option* to = build
                          ->add_option("--export", build_flags_.export_file,
                                       "write the hooks to a file, for machines with the same torch and no compiler")
                          ->option_text("FILE");
    build->add_option("--import", build_flags_.import_file, "read the hooks from such a file")
        ->option_text("FILE")
        ->excludes(to);
    build->add_flag("--quiet", build_flags_.quiet, "show no progress");
  }

  void add_lib() {
    add_command("lib", "Print the path of the library, for LD_PRELOAD=$(devsan lib)", [] {
      std::cout << preload_name(find_installation().library) << '\n';
      return 0;
    });
  }

  // For the build of devsan itself: CMake installs what this writes.
  void add_write_reference() {
    const auto share = std::make_shared<std::string>();
    CLI::App* command =
        add_command("write-reference", "Write the man page and the completions below DIR", [this, share] {
          const std::map<std::string, std::vector<std::string>> words = {{"KINDS", FailOn::words()},
                                                                         {"WHEN", {"auto", "always", "never"}}};
          write_reference(read_reference(app_, DEVSAN_VERSION, words), *share);
          return 0;
        });
    command->group("")->add_option("directory", *share)->required()->type_name("DIR");
  }

  int run() {
    check_words("run", request_.command, request_.flags, "--sim-memory");
    if (fail_on_) request_.fail_on = FailOn::parse(*fail_on_);
    return run_command(request_);
  }

  int preflight() {
    check_words("preflight", preflight_request_.command, preflight_request_.flags, "--gpu-memory");
    return preflight_command(preflight_request_);
  }

  static void check_words(const std::string& name, const std::vector<std::string>& command, const RunFlags& flags,
                          const std::string& memory) {
    if (command.empty()) throw UsageError(name + ": no command given; write it after --");
    if (flags.sim_memory && trace::parse_size(*flags.sim_memory) == 0) {
      throw UsageError(name + ": " + memory + ": '" + *flags.sim_memory + "' is not a size such as 8G or 512M");
    }
    if (flags.out && flags.out->empty()) throw UsageError(name + ": --out needs a directory");
    if (flags.suppressions && flags.suppressions->empty()) throw UsageError(name + ": --suppressions needs a file");
    if (flags.rules && flags.rules->empty()) throw UsageError(name + ": --rules needs a file");
  }

  // The user's command must not be read as options of devsan's.
  static std::vector<std::string> take_command(const CLI::App& command, std::vector<std::string>& arguments) {
    const RunWords split = split_run_words({arguments.begin() + 1, arguments.end()}, [&](const std::string& name) {
      const CLI::Option* option = command.get_option_no_throw(name);
      return option != nullptr && option->get_items_expected_min() > 0;
    });
    arguments = split.options;
    arguments.insert(arguments.begin(), command.get_name());
    return split.command;
  }

  std::string prefix_of_chosen() {
    const auto chosen = app_.get_subcommands();
    return chosen.empty() ? "" : chosen.front()->get_name() + ": ";
  }

  // What to say about words that mean nothing.
  std::string about_extras() {
    const auto chosen = app_.get_subcommands();
    const CLI::App* owner = chosen.empty() ? &app_ : chosen.front();
    const std::vector<std::string> extras = app_.remaining(true);
    const std::string word = extras.empty() ? "" : extras.front();
    const bool is_option = word.starts_with('-');
    std::vector<std::string> known;
    if (is_option) {
      for (const CLI::Option* option : owner->get_options()) known.push_back(option->get_name());
    } else if (chosen.empty()) {
      for (const CLI::App* command : shown_commands(app_)) known.push_back(command->get_name());
    }
    const std::string what = is_option ? "option " : (chosen.empty() ? "command " : "argument ");
    return prefix_of_chosen() + "unknown " + what + word + doctor::did_you_mean(word.substr(0, word.find('=')), known);
  }

  CLI::App app_{"Finds tensors that are on the wrong device, and shows how they got there.", "devsan"};
  CLI::App* run_ = nullptr;
  std::function<int()> action_;
  int view_status_ = 0;
  RunRequest request_;
  CLI::App* preflight_ = nullptr;
  PreflightRequest preflight_request_;
  std::optional<std::string> fail_on_;
  BuildFlags build_flags_;
  DoctorRequest doctor_;
};

int guarded(int count, char** words) {
  try {
    return CommandLine().execute(count, words);
  } catch (const UsageError& error) {
    say(error.what());
    return kUsageStatus;
  } catch (const Interrupted& interrupted) {
    signal(interrupted.signal, SIG_DFL);
    raise(interrupted.signal);
    return 128 + interrupted.signal;
  } catch (const std::exception& error) {
    say(error.what());
    return 1;
  }
}

}  // namespace
}  // namespace devsan::launch

int main(int count, char** words) {
  return devsan::launch::guarded(count, words);
}

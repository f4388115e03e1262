#include "launch/run.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <random>
#include <set>

#include "launch/file_text.h"
#include "launch/kernel_log.h"
#include "launch/messages.h"
#include "launch/oom_kills.h"
#include "launch/run_hooks.h"
#include "launch/supervise.h"
#include "launch/target_python.h"
#include "preload/elf_file.h"
#include "report/findings/collect.h"
#include "report/findings/runs.h"
#include "report/findings/suppress.h"
#include "report/render/summary.h"
#include "report/text/style.h"
#include "rules/rules_file.h"
#include "trace/process_end.h"
#include "trace/shrink.h"

namespace devsan::launch {
namespace {

namespace fs = std::filesystem;

std::string default_directory() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char text[32];
  std::strftime(text, sizeof text, "%Y%m%d-%H%M%S", &local);
  return std::string("devsan-out/") + text + "-" + std::to_string(getpid());
}

// No other has this name, on whatever machine: directories may be shared.
std::string new_run() {
  std::random_device random;
  char text[64];
  std::snprintf(text, sizeof text, "%lld-%d-%08x", static_cast<long long>(std::time(nullptr)),
                static_cast<int>(getpid()), static_cast<unsigned>(random()));
  return text;
}

std::set<fs::path> traces_in(const fs::path& directory) {
  std::set<fs::path> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    if (entry.path().extension() == ".devsan") found.insert(entry.path());
  }
  return found;
}

bool is_inside_another_run(const Installation& installation) {
  pid_t pid = getppid();
  while (pid > 1) {
    const std::string process = "/proc/" + std::to_string(pid);
    std::error_code error;
    if (fs::read_symlink(process + "/exe", error) == installation.program) return true;
    const std::string text = text_of_file(process + "/stat");
    const std::size_t name_end = text.rfind(") ");
    if (name_end == std::string::npos) return false;
    pid = std::atoi(text.c_str() + name_end + 4);  // ") S ppid"
  }
  return false;
}

std::string shell_message(const std::string& command, int error) {
  if (error == ENOENT && command.find('/') == std::string::npos) return command + ": command not found";
  struct stat status {};
  if (error == EACCES && stat(command.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) error = EISDIR;
  return command + ": " + std::strerror(error);
}

// Programs that the dynamic loader does not preload anything into.
std::string why_not_preloaded(const std::vector<std::string>& command) {
  const std::optional<std::string> program = find_program(command[0]);
  if (!program) return {};
  struct stat status {};
  if (stat(program->c_str(), &status) == 0 && (status.st_mode & S_ISUID) != 0 && status.st_uid != getuid()) {
    return *program + " is a set-user-ID program of another user";
  }
  return ElfFile(program->c_str()).is_static_program() ? *program + " is statically linked" : std::string();
}

// A program that is linked to AddressSanitizer's library refuses to start when another library comes before it.
std::string preload_before_ours(const std::vector<std::string>& command, std::string existing) {
  const std::optional<std::string> program = find_program(command[0]);
  if (!program) return existing;
  ElfFile(program->c_str()).any_needed([&](const char* library) {
    const bool there = existing.find("libasan.so") != std::string::npos;
    if (std::string_view(library).starts_with("libasan.so") && !there) existing.insert(0, std::string(library) + ":");
    return false;
  });
  return existing;
}

struct Traced {
  fs::path directory;
  std::string run;
  std::set<fs::path> before;  // traces of earlier runs
  std::optional<std::uint64_t> oom_kills;
  std::string untraceable;  // why the command itself cannot be traced
  KernelLog kernel_log{};
};

// A process cannot say itself what killed it. Who reads its trace later is to know, too. The same program may have been
// replaced by another, whose trace is a second one of that pid.
void tell_end_of(std::uint32_t pid, const trace::ToldEnd& end, const std::vector<fs::path>& made) {
  for (const fs::path& trace : made) trace::tell_end(trace.c_str(), pid, end);
}

// How the command ended, and which of its processes the kernel says that it killed.
void tell_ends(const Ending& ending, Traced& traced, const std::vector<fs::path>& made) {
  const auto command = static_cast<std::uint32_t>(ending.pid);
  const std::set<std::uint32_t> killed = traced.kernel_log.killed_for_memory();
  for (const std::uint32_t pid : killed)
    tell_end_of(pid, {trace::kToldByWaiter, SIGKILL, 0, trace::kNamedByKernel}, made);
  trace::ToldEnd end{trace::kToldByWaiter, ending.wait_status, 0, 0};
  const std::optional<std::uint64_t> now = traced.oom_kills ? oom_kills() : std::nullopt;
  if (now && *now >= *traced.oom_kills) {
    end.oom_evidence |= trace::kKillsCounted;
    end.oom_kills = static_cast<std::uint32_t>(*now - *traced.oom_kills);
  }
  if (killed.contains(command)) end.oom_evidence |= trace::kNamedByKernel;
  tell_end_of(command, end, made);
}

int after_the_run(const RunRequest& request, Traced& traced, const Ending& ending, bool quiet) {
  const int status = exit_status(ending);
  std::vector<fs::path> made;
  const std::set<fs::path> now = traces_in(traced.directory);
  std::set_difference(now.begin(), now.end(), traced.before.begin(), traced.before.end(), std::back_inserter(made));
  made = report::traces_of_run(made, traced.run);
  tell_ends(ending, traced, made);
  for (const fs::path& trace : made) trace::give_back_unused(trace.c_str());
  if (made.empty()) {
    std::string why = traced.untraceable;
    if (why.empty() && isatty(STDERR_FILENO) != 0) why = why_not_preloaded(request.command);
    if (request.judge) return request.judge({}, status, why);
    if (!why.empty() && !quiet) say("nothing was traced: " + why);
    return status;
  }
  const bool judged = status == 0 && request.fail_on;
  if (quiet && !judged && !request.judge) return status;
  const report::Reading reading = report::read_traces(made);
  if (!quiet && (report::has_something_to_tell(reading.report) || isatty(STDERR_FILENO) != 0)) {
    std::cerr << report::summary(reading.report, report::style_for(STDERR_FILENO)) << std::flush;
  }
  if (request.judge) return request.judge(reading.report, status, "");
  const std::string failed_on = judged ? request.fail_on->matches_text(reading.report) : std::string();
  if (!failed_on.empty() && !quiet) say("exit status 66 for --fail-on: " + failed_on);
  return failed_on.empty() ? status : kFindingStatus;
}

// Says what is wrong with the file before anything runs: found out at the end of a long run, it would have cost that
// run.
bool suppressions_are_right(const std::string& path, const std::string& command) {
  if (path.empty()) return true;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_fifo(status) || fs::is_socket(status)) {
    say(command + ": " + path + " is not a regular file; each process of the run reads the suppressions from it");
    return false;
  }
  const report::SuppressionFile file = report::read_suppression_file(path);
  for (const std::string& complaint : file.complaints) say(command + ": " + complaint);
  return file.complaints.empty();
}

// The rules of the command line, compiled into a file beside the traces: every process of the run reads that. Says what
// is wrong with them before anything runs.
class RulesOfRun {
 public:
  // False where the rules are wrong, or cannot be passed on.
  bool read(const std::optional<std::string>& path, const trace::Options& options, const std::string& command) {
    if (!path || !options.enabled) return true;
    const rules::RulesFile file = rules::read_rules(*path);
    for (const rules::Complaint& complaint : file.complaints) say(command + ": " + complaint.sentence());
    if (!file.complaints.empty()) return false;
    std::error_code error;
    text_ = rules::compiled(file, fs::absolute(*path, error));
    return true;
  }

  // Names the file to the processes.
  void pass_on(trace::Options& options) {
    if (text_.empty()) return;
    const fs::path directory = options.out;
    std::error_code error;
    made_directory_ = fs::create_directories(directory, error);
    if (made_directory_) fs::permissions(directory, fs::perms::owner_all, error);
    file_ = directory / ("rules-" + options.run + ".compiled");
    const int fd = open(file_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
    const bool written = fd >= 0 && write(fd, text_.data(), text_.size()) == static_cast<ssize_t>(text_.size());
    if (!written) warn("cannot write " + file_.string() + ": " + std::strerror(errno) + "; no rules are judged");
    if (fd >= 0) close(fd);
    if (written) options.rules = file_.string();
  }

  // Its rules are in the traces by now.
  void remove() const {
    std::error_code error;
    if (!file_.empty()) fs::remove(file_, error);
    if (made_directory_) fs::remove(file_.parent_path(), error);  // only if nothing is in it
  }

 private:
  std::string text_;
  fs::path file_;
  bool made_directory_ = false;
};

enum class Start {
  refused,   // which was said
  untraced,  // devsan is switched off
  traced,
};

// Sets the environment up for devsan.
Start prepare(const RunRequest& request, const Installation& installation, trace::ParsedOptions& merged,
              Environment& environment, std::string& untraceable) {
  const bool quiet = merged.options.quiet;
  for (const std::string& complaint : merged.complaints) {
    if (!quiet) warn("DEVSAN_OPTIONS: " + complaint);
  }
  if (merged.options.enabled) {
    const bool simulated = request.flags.sim.value_or(0) > 0;
    const HooksForRun hooks = prepare_hooks(installation, request.command, merged.options, simulated);
    if (!hooks.refusal.empty()) {
      say((request.judge ? "preflight: no simulated devices: " : "run: --sim cannot be had: ") + hooks.refusal);
      return Start::refused;
    }
    untraceable = hooks.untraceable;
    // A process that is ended in the middle keeps no output back.
    if (request.judge) environment.set("PYTHONUNBUFFERED", "1");
    if (!hooks.told.empty()) merged.options.told = hooks.told;
  }
  environment.set("DEVSAN_OPTIONS", trace::format_options(merged.options));
  const std::string others = preload_before_ours(request.command, environment.get("LD_PRELOAD").value_or(""));
  environment.set("LD_PRELOAD", merge_preload(others, preload_name(installation.library)));
  return merged.options.enabled ? Start::traced : Start::untraced;
}

}  // namespace

int run_command(const RunRequest& request) {
  Environment environment = Environment::inherited();
  const std::string given = environment.get("DEVSAN_OPTIONS").value_or("");
  trace::ParsedOptions merged = merge_options(given, request.flags, default_directory());
  const std::string name = request.judge ? "preflight" : "run";
  if (request.judge && !merged.options.enabled) throw UsageError("preflight: DEVSAN_OPTIONS switches devsan off");
  if (merged.options.enabled && !suppressions_are_right(merged.options.suppressions, name)) return kUsageStatus;
  RulesOfRun rules;
  if (!rules.read(request.flags.rules, merged.options, name)) return kUsageStatus;
  if (request.before) request.before();
  Start start = Start::untraced;
  std::string untraceable;
  bool nested = false;
  try {
    const Installation installation = find_installation();
    // A run inside a run that shares its directory leaves the summary to it.
    const bool inside = is_inside_another_run(installation);
    nested = inside && trace::parse_options(given).options.out == merged.options.out;
    if (merged.options.run.empty() || (inside && !nested)) merged.options.run = new_run();
    rules.pass_on(merged.options);
    start = prepare(request, installation, merged, environment, untraceable);
  } catch (const Failure& failure) {
    if (request.judge) throw;
    if (!merged.options.quiet) warn(failure.what());
  }
  if (start == Start::refused) return kUsageStatus;
  Traced where{merged.options.out, merged.options.run, traces_in(merged.options.out), oom_kills(), untraceable};
  const Ending ending = supervise(request.command, environment);
  rules.remove();
  // Whoever read our stderr may be gone; that must not change how the run ended.
  signal(SIGPIPE, SIG_IGN);
  const int status = exit_status(ending);
  if (ending.start_error != 0) {
    say(shell_message(request.command[0], ending.start_error));
    return status;
  }
  return start == Start::traced ? after_the_run(request, where, ending, merged.options.quiet || nested) : status;
}

}  // namespace devsan::launch

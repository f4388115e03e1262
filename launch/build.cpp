#include "launch/build.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sstream>
#include <utility>

#include "launch/cache.h"
#include "launch/jobs.h"
#include "launch/messages.h"
#include "launch/target_python.h"

namespace devsan::launch {
namespace {

namespace fs = std::filesystem;

// A shard costs some 10 seconds for torch's headers alone, so there are as many as run at once, within bounds.
constexpr std::size_t kMinShards = 2;
constexpr std::size_t kMaxShards = 16;
constexpr std::uintmax_t kLittleSpace = 1 << 20;

std::vector<fs::path> sources_in(const fs::path& directory) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(directory, error)) {
    if (entry.path().extension() == ".cpp") found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

// Files of different folders may have one name.
std::string flat_name(const fs::path& source) {
  std::string name = fs::path(source).replace_extension().string();
  std::replace(name.begin(), name.end(), '/', '-');
  return name;
}

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

// The lines that tell what went wrong; the whole log of a C++ compiler is no reading.
std::string telling_lines(const std::string& log) {
  constexpr int kLines = 4;
  std::istringstream lines(log);
  std::string picked;
  std::string last;
  int count = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) last = line;
    if (line.find("rror") == std::string::npos && line.find("No space left") == std::string::npos) continue;
    if (++count <= kLines) picked += "\n  " + line;
  }
  if (picked.empty() && !last.empty()) picked = "\n  " + last;
  return picked;
}

void check(const std::vector<JobFailure>& failures, const fs::path& staging) {
  if (failures.empty()) return;
  const JobFailure& first = failures.front();
  std::string text = "building the hooks failed at " + first.what;
  if (first.start_error != 0) {
    text += std::string(": ") + std::strerror(first.start_error);
  } else if (WIFSIGNALED(first.wait_status)) {
    const int signal = WTERMSIG(first.wait_status);
    text += std::string(": ended by a signal (") + strsignal(signal) + (signal == SIGKILL ? ", memory?)" : ")");
  }
  std::error_code error;
  const fs::space_info space = fs::space(staging, error);
  // The compiler's own words about a full disk may have found no room either.
  if (!error && space.available < kLittleSpace) {
    throw Failure(text + ": " + std::strerror(ENOSPC) + " for " + staging.parent_path().string());
  }
  throw Failure(text + telling_lines(first.log));
}

// `version` as torch writes it: "2.13.0+cpu".
bool can_be_simulated(const std::string& version) {
  int major = 0;
  int minor = 0;
  if (std::sscanf(version.c_str(), "%d.%d", &major, &minor) != 2) return true;  // the compiler will say
  return std::pair(major, minor) >= std::pair(kSimTorchMajor, kSimTorchMinor);
}

// One build, in its staging folder.
class Build {
 public:
  Build(const Installation& installation, const Torch& torch, const fs::path& staging, Progress& progress)
      : installation_(installation),
        torch_(torch),
        work_(staging / "work"),
        out_(staging),
        progress_(progress),
        compiler_(find_compiler()),
        slots_(compiler_slots()) {}

  void run() {
    fs::create_directories(generated());
    fs::create_directories(temporary());
    check(run_jobs({generate_job()}, 1, [](std::size_t) {}), out_);
    compile();
    link();
    std::error_code error;
    fs::remove_all(work_, error);
  }

 private:
  fs::path generated() const { return work_ / "generated"; }
  fs::path temporary() const { return work_ / "tmp"; }

  Job job(const std::string& what, std::vector<std::string> command) const {
    return Job{what, std::move(command), work_ / (fs::path(what).filename().string() + ".log"), temporary()};
  }

  Job generate_job() const {
    const std::size_t shards = std::clamp(slots_, kMinShards, kMaxShards);
    const fs::path script = installation_.sources / "hooks/operators/generate_wrappers.py";
    return job("generate_wrappers.py", {torch_.python, script.string(), "--include", torch_.include().string(), "--out",
                                        generated().string(), "--shards", std::to_string(shards)});
  }

  void compile() {
    std::vector<Job> jobs;
    // The generated sources take longest, so they go first.
    add_compilations(generated(), "hooks", jobs);
    if (can_be_simulated(torch_.version)) add_compilations(installation_.sources / "sim", "sim", jobs);
    add_compilations(installation_.sources / "hooks", "hooks", jobs);
    const auto show = [&](std::size_t done) {
      progress_.update("compiling the hooks for torch " + torch_.version + ": " + std::to_string(done) + " of " +
                       std::to_string(jobs.size()));
    };
    show(0);
    check(run_jobs(jobs, slots_, show), out_);
  }

  void add_compilations(const fs::path& sources, const std::string& library, std::vector<Job>& jobs) {
    for (const fs::path& source : sources_in(sources)) {
      const fs::path object = work_ / (library + "-" + flat_name(source.lexically_relative(sources)) + ".o");
      std::vector<std::string> command = compiler_;
      for (std::string& flag : compile_flags(installation_, torch_, generated())) command.push_back(std::move(flag));
      command.insert(command.end(), {"-c", source.string(), "-o", object.string()});
      jobs.push_back(job(source.filename().string(), std::move(command)));
      jobs.back().log = object.string() + ".log";
      (library == "sim" ? sim_objects_ : hooks_objects_).push_back(object.string());
    }
  }

  void link() {
    std::vector<Job> jobs = {link_job(kHooksLibrary, hooks_objects_)};
    if (!sim_objects_.empty()) jobs.push_back(link_job(kSimLibrary, sim_objects_));
    check(run_jobs(jobs, slots_, [](std::size_t) {}), out_);
  }

  // No RUNPATH: the process has loaded its libtorch already, and must not be made to load another.
  Job link_job(const char* library, const std::vector<std::string>& objects) const {
    std::vector<std::string> command = compiler_;
    command.insert(command.end(), {"-shared", "-o", (out_ / library).string(), std::string("-Wl,-soname,") + library});
    command.insert(command.end(), objects.begin(), objects.end());
    command.insert(command.end(), {"-L" + torch_.libraries().string(), "-ltorch_cpu", "-lc10"});
    return job(library, std::move(command));
  }

  const Installation& installation_;
  const Torch& torch_;
  fs::path work_;
  fs::path out_;
  Progress& progress_;
  std::vector<std::string> compiler_;
  std::size_t slots_;
  std::vector<std::string> hooks_objects_;
  std::vector<std::string> sim_objects_;
};

// Said before the wait. Compilers differ by half; nobody plans by it.
std::string expected_time(std::size_t slots) {
  constexpr std::size_t kProcessorMinutes = 9;
  const std::size_t minutes = (kProcessorMinutes + slots - 1) / slots;
  return "this takes some " + (minutes == 1 ? std::string("60 seconds") : std::to_string(minutes) + " minutes") +
         " on " + std::to_string(slots) + (slots == 1 ? " processor" : " processors");
}

long seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

std::vector<std::string> find_compiler() {
  const char* chosen = std::getenv("CXX");
  if (chosen != nullptr && chosen[0] != '\0') {
    std::istringstream words(chosen);  // "ccache g++"
    std::vector<std::string> command;
    for (std::string word; words >> word;) command.push_back(word);
    if (!command.empty() && find_program(command[0])) return command;
    throw Failure("the hooks have to be compiled once, but CXX names no program: " + join(command));
  }
  for (const char* name : {"g++", "c++", "clang++"}) {
    if (const auto path = find_program(name)) return {*path};
  }
  throw Failure(
      "the hooks have to be compiled once, and there is no C++ compiler: install g++ 11 or later, or clang++ 14 or "
      "later (Debian, Ubuntu: apt install g++), or name one in CXX");
}

std::vector<std::string> compile_flags(const Installation& installation, const Torch& torch,
                                       const fs::path& generated) {
  return {
      "-std=c++20",
      "-O2",
      "-fPIC",
      "-fvisibility=hidden",
      "-fvisibility-inlines-hidden",
      "-fno-plt",  // an operator is called through its own slot, without a stub between
      "-w",        // torch's headers and an unknown compiler: warnings here help nobody
      std::string("-D_GLIBCXX_USE_CXX11_ABI=") + (torch.cxx11_abi ? "1" : "0"),
      "-I" + installation.sources.string(),
      "-I" + generated.string(),
      "-isystem",
      torch.include().string(),
      "-isystem",
      (torch.include() / "torch/csrc/api/include").string(),
  };
}

fs::path ensure_hooks(const Installation& installation, const Torch& torch, bool force, bool quiet) {
  HooksLocation location;
  HooksState state = locate_hooks(torch.library().c_str(), &location);
  if (state == HooksState::ready && !force) return location.directory;
  if (const std::string why = why_unusable(state, location); !why.empty()) throw Failure(why);
  find_compiler();
  prepare_cache(location);
  const auto start = std::chrono::steady_clock::now();
  Progress progress(quiet);
  const BuildLock lock(location, [&] { progress.start("another process is building the hooks; waiting for it"); });
  if (!force && locate_hooks(torch.library().c_str(), &location) == HooksState::ready) return location.directory;
  progress.start("building the hooks for torch " + torch.version + ", once; " + expected_time(compiler_slots()));
  Staging staging(location);
  Build(installation, torch, staging.path(), progress).run();
  staging.publish();
  progress.finish("built the hooks for torch " + torch.version + " in " + std::to_string(seconds_since(start)) + " s");
  return location.directory;
}

int build_command(const BuildFlags& flags) {
  const std::string named = flags.python.empty() ? "python3" : flags.python;
  const std::optional<std::string> python = find_program(named);
  if (!python) throw Failure("there is no program " + named);
  const ProbeResult probed = probe_torch(*python);
  if (!probed.torch) throw Failure(probed.reason);
  std::cout << ensure_hooks(find_installation(), *probed.torch, flags.force, flags.quiet).string() << '\n';
  return 0;
}

}  // namespace devsan::launch

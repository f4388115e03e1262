#include "launch/compile.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <span>
#include <sstream>
#include <utility>

#include "launch/capacity.h"
#include "launch/jobs.h"
#include "launch/target_python.h"
#include "preload/hooks_cache.h"
#include "preload/torch_identity.h"

namespace devsan::launch {
namespace {

namespace fs = std::filesystem;

// Of a source that includes torch's headers most is those headers, so such sources are compiled several in one unit:
// as many units as run at once, within bounds.
constexpr std::size_t kMostBridgeUnits = 2;
constexpr std::size_t kMostSimulationUnits = 3;
constexpr std::size_t kMinShards = 2;  // of the wrappers, whose own code takes long
constexpr std::size_t kMaxShards = 16;
constexpr std::uintmax_t kLittleSpace = 1 << 20;
constexpr char kArchive[] = "libdevsan_inprocess.a";

std::vector<fs::path> sources_in(const fs::path& directory) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(directory, error)) {
    if (entry.path().extension() == ".cpp") found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
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
    const auto names = [&](const char* word) { return line.find(word) != std::string::npos; };
    if (!names("rror") && !names("No space left") && !names("undefined reference") && !names("multiple definition")) {
      continue;
    }
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

// What g++ has to be told for one source.
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

// One library, compiled in a staging folder.
class Compilation {
 public:
  Compilation(const Installation& installation, const Torch& torch, const fs::path& folder, const char* library,
              const char* what, Progress& progress)
      : installation_(installation),
        torch_(torch),
        work_(folder / (std::string(library) + ".work")),
        folder_(folder),
        library_(library),
        what_(what),
        progress_(progress),
        compiler_(find_compiler()),
        slots_(compiler_slots()) {
    fs::create_directories(generated());
    fs::create_directories(work_ / "tmp");
  }

  ~Compilation() {
    std::error_code error;
    fs::remove_all(work_, error);
  }

  Compilation(const Compilation&) = delete;
  Compilation& operator=(const Compilation&) = delete;

  // The wrappers of this torch's operators. They take longest, so they go first.
  void add_wrappers() {
    const std::size_t shards = std::clamp(slots_, kMinShards, kMaxShards);
    const fs::path script = installation_.sources / "hooks/torch_bridge/generate_wrappers.py";
    check(run_jobs({job("generate_wrappers.py", {torch_.python, script.string(), "--include", torch_.include().string(),
                                                 "--out", generated().string(), "--shards", std::to_string(shards)})},
                   1, [](std::size_t) {}),
          folder_);
    for (const fs::path& source : sources_in(generated())) add_unit(source);
  }

  // The sources of one folder, in so many units at most.
  void add_sources(const char* directory, std::size_t most_units) {
    const std::vector<fs::path> sources = sources_in(installation_.sources / directory);
    const std::size_t units = std::clamp(slots_, std::size_t{1}, most_units);
    for (std::size_t unit = 0; unit < units; ++unit) {
      const std::size_t first = sources.size() * unit / units;
      const std::size_t end = sources.size() * (unit + 1) / units;
      add_unit(joined(fs::path(directory).filename().string() + std::to_string(unit) + ".cpp",
                      std::span(sources).subspan(first, end - first)));
    }
  }

  // What of the hooks needs no torch: from the archive, or compiled as well where there is none for this ABI.
  void add_inprocess() {
    const fs::path archive =
        installation_.archives / name_of(torch_.cxx11_abi ? CxxAbi::cxx11 : CxxAbi::pre_cxx11) / kArchive;
    std::error_code error;
    if (fs::exists(archive, error)) {
      objects_.push_back(archive.string());
      return;
    }
    for (const fs::path& source : sources_in(installation_.sources / "hooks/inprocess")) add_unit(source);
  }

  void run() {
    const auto show = [&](std::size_t done) {
      progress_.update("compiling " + std::string(what_) + " for torch " + torch_.version + ": " +
                       std::to_string(done) + " of " + std::to_string(jobs_.size()));
    };
    show(0);
    check(run_jobs(jobs_, slots_, show), folder_);
    check(run_jobs({link_job()}, 1, [](std::size_t) {}), folder_);
  }

 private:
  fs::path generated() const { return work_ / "generated"; }

  Job job(const std::string& what, std::vector<std::string> command) const {
    return Job{what, std::move(command), work_ / (what + ".log"), work_ / "tmp"};
  }

  // A unit that includes the sources. The assembler's and the compiler's messages name the source itself.
  fs::path joined(const std::string& name, std::span<const fs::path> sources) const {
    const fs::path unit = work_ / name;
    std::ofstream out(unit);
    for (const fs::path& source : sources) out << "#include \"" << source.string() << "\"\n";
    out.close();
    if (!out) throw Failure("building the hooks failed: cannot write " + unit.string());
    return unit;
  }

  void add_unit(const fs::path& source) {
    const std::string name = std::to_string(jobs_.size()) + "-" + source.filename().string();
    const fs::path object = work_ / (name + ".o");
    std::vector<std::string> command = compiler_;
    for (std::string& flag : compile_flags(installation_, torch_, generated())) command.push_back(std::move(flag));
    command.insert(command.end(), {"-c", source.string(), "-o", object.string()});
    jobs_.push_back(job(name, std::move(command)));
    jobs_.back().what = source.filename().string();
    objects_.push_back(object.string());
  }

  // No RUNPATH: the process has loaded its libtorch already, and must not be made to load another. Both libraries are
  // named even where a linker finds no use for one: by them it is seen whether the hooks fit a torch.
  Job link_job() const {
    std::vector<std::string> command = compiler_;
    command.insert(command.end(),
                   {"-shared", "-o", (folder_ / library_).string(), std::string("-Wl,-soname,") + library_});
    command.insert(command.end(), objects_.begin(), objects_.end());
    command.insert(command.end(), {"-L" + torch_.libraries().string(), "-Wl,--push-state,--no-as-needed", "-ltorch_cpu",
                                   "-lc10", "-Wl,--pop-state"});
    return job(library_, std::move(command));
  }

  const Installation& installation_;
  const Torch& torch_;
  fs::path work_;
  fs::path folder_;
  const char* library_;
  const char* what_;  // for messages
  Progress& progress_;
  std::vector<std::string> compiler_;
  std::size_t slots_;
  std::vector<Job> jobs_;
  std::vector<std::string> objects_;
};

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
      "no hooks for this torch, and no C++ compiler to build them: use a devsan wheel that has them, or install g++ 11 "
      "or clang++ 14 or later (apt install g++, conda install gxx, module load gcc; CXX names another), or copy them "
      "from a machine with the same torch (devsan build --export FILE there, --import FILE here)");
}

bool can_be_simulated(const Torch& torch) {
  // The compiler decides about what is no version.
  return !is_older(torch.version.c_str(), kSimTorchMajor, kSimTorchMinor);
}

void compile_hooks(const Installation& installation, const Torch& torch, const fs::path& folder, Progress& progress) {
  Compilation hooks(installation, torch, folder, kHooksLibrary, "the hooks", progress);
  hooks.add_wrappers();
  hooks.add_sources("hooks/torch_bridge", kMostBridgeUnits);
  hooks.add_inprocess();
  hooks.run();
}

void compile_simulation(const Installation& installation, const Torch& torch, const fs::path& folder,
                        Progress& progress) {
  Compilation simulation(installation, torch, folder, kSimLibrary, "the simulated devices", progress);
  simulation.add_sources("sim", kMostSimulationUnits);
  simulation.run();
}

}  // namespace devsan::launch

#include "report/collect_command.h"

#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include "report/command_output.h"
#include "report/findings/collect.h"
#include "report/findings/gather.h"
#include "report/text/words.h"

extern char** environ;

namespace devsan::report {
namespace {

namespace fs = std::filesystem;

struct CollectOptions {
  std::vector<std::string> places;
  fs::path into;
  bool all_runs = false;
};

// "node-1:/tmp/out", as scp has it: a colon before any slash. A host is no option of the command that is run.
struct RemotePlace {
  std::string host;
  std::string directory;
};

std::optional<RemotePlace> remote_place(const std::string& place) {
  const std::size_t colon = place.find(':');
  if (colon == std::string::npos || colon == 0 || place.find('/') < colon) return std::nullopt;
  return RemotePlace{place.substr(0, colon), place.substr(colon + 1)};
}

// The exit status of a command; 127 where it is not there.
int run_program(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t pid = 0;
  if (posix_spawnp(&pid, arguments[0], nullptr, nullptr, arguments.data(), environ) != 0) return 127;
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return 127;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// A directory of its own inside the target, gone at the end: what is fetched may be as large as all traces.
class FetchDirectory {
 public:
  explicit FetchDirectory(const fs::path& into) : path_((into / ".fetched-XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  FetchDirectory(const FetchDirectory&) = delete;
  FetchDirectory& operator=(const FetchDirectory&) = delete;
  ~FetchDirectory() {
    std::error_code error;
    if (!path_.empty()) fs::remove_all(path_, error);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Where the traces are by then; nothing where they could not be fetched. rsync leaves holes out; where there is none,
// scp does. Both speak for themselves where something is wrong.
std::optional<fs::path> fetch(const RemotePlace& place, const fs::path& into) {
  const std::string from = place.host + ":" + place.directory;
  const int status = run_program({"rsync", "--archive", "--sparse", "--prune-empty-dirs", "--include=*/",
                                  "--include=*.devsan", "--exclude=*", "--", from + "/", into.string() + "/"});
  if (status == 0) return into;
  const bool by_scp = status == 127 && run_program({"scp", "-r", "-p", "-q", "--", from, into.string()}) == 0;
  if (by_scp) {
    std::error_code error;
    for (const fs::directory_entry& made : fs::directory_iterator(into, error)) return made.path();
    return into;
  }
  complain(from + ": the traces could not be fetched" +
           (status == 127 ? " by scp, and there is no rsync" : ": rsync ended with " + std::to_string(status)));
  return std::nullopt;
}

struct Tally {
  Gathered gathered;
  bool failed = false;
};

void gather_from(const fs::path& directory, const CollectOptions& options, Tally& tally) {
  const fs::path paths[] = {directory};
  const TraceListing listing = list_traces(paths, options.all_runs ? RunsRead::all : RunsRead::newest);
  for (const std::string& complaint : listing.complaints) complain(complaint);
  tally.failed = tally.failed || !listing.complaints.empty();
  const Gathered gathered = gather_traces(listing.files, options.into);
  for (const std::string& complaint : gathered.complaints) complain(complaint);
  tally.gathered.copied += gathered.copied;
  tally.gathered.already_there += gathered.already_there;
  tally.failed = tally.failed || !gathered.complaints.empty();
}

void gather_place(const std::string& place, const CollectOptions& options, Tally& tally) {
  const std::optional<RemotePlace> remote = remote_place(place);
  if (!remote) return gather_from(place, options, tally);
  const FetchDirectory fetched(options.into);
  if (fetched.path().empty()) {
    complain(options.into.string() + ": " + std::strerror(errno));
    tally.failed = true;
  } else if (const auto directory = fetch(*remote, fetched.path())) {
    gather_from(*directory, options, tally);
  } else {
    tally.failed = true;
  }
}

int collect(const CollectOptions& options) {
  std::error_code error;
  if (fs::create_directories(options.into, error)) fs::permissions(options.into, fs::perms::owner_all, error);
  if (error) {
    complain(options.into.string() + ": " + error.message());
    return 1;
  }
  Tally tally;
  for (const std::string& place : options.places) gather_place(place, options, tally);
  std::string text = "devsan: " + counted(tally.gathered.copied, "trace") + " gathered in " + options.into.string();
  if (tally.gathered.already_there > 0) text += ", " + std::to_string(tally.gathered.already_there) + " already there";
  std::cout << text << "\n" << std::flush;
  return tally.failed ? 1 : 0;
}

}  // namespace

CLI::App* add_collect_command(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand("collect", "Gather the traces of several machines in one directory");
  const auto options = std::make_shared<CollectOptions>();
  command
      ->add_option("places", options->places,
                   "directories of traces, here or on a host that ssh reaches; of each its newest run")
      ->type_name("[HOST:]DIR")
      ->required();
  command->add_option("--into", options->into, "the directory to gather them in; what lies there stays as it is")
      ->option_text("DIR")
      ->required();
  command->add_flag("--all-runs", options->all_runs, "gather all runs, not just the newest of each directory");
  command->footer("The exit status is 0 if all of it was gathered whole, and 1 if something was not.");
  command->callback([options, &exit_status] {
    for (const std::string& place : options->places) {
      if (place.starts_with('-')) throw CLI::ValidationError("places", place + " is no place");
    }
    exit_status = collect(*options);
  });
  return command;
}

}  // namespace devsan::report

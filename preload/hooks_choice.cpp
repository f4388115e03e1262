#include "preload/hooks_choice.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "preload/hooks_fit.h"
#include "preload/mapped_file.h"

namespace devsan {
namespace {

constexpr std::string_view kIndexFormat = "devsan-hooks 1 ";

// A directory (not a link to one) of this process's user or of root that nobody else can write.
bool is_trusted_directory(const char* path) noexcept {
  struct stat status;
  return lstat(path, &status) == 0 && S_ISDIR(status.st_mode) && (status.st_uid == geteuid() || status.st_uid == 0) &&
         (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool is_there(const char* path) noexcept {
  struct stat status;
  return lstat(path, &status) == 0;
}

class Search {
 public:
  Search(const char* libtorch_cpu, const Complaints& complaints, HooksChoice* choice) noexcept
      : libtorch_cpu_(libtorch_cpu), complaints_(complaints), choice_(choice) {}

  // DEVSAN_HOOKS_PATH: folders, separated by colons.
  bool among_given() const noexcept {
    const char* variable = std::getenv("DEVSAN_HOOKS_PATH");
    if (variable == nullptr || variable[0] == '\0') return false;
    const char* key = choice_->cache.key;
    if (key[0] == '\0') return false;
    std::string_view rest = variable;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(':'), rest.size());
      const std::string_view root = rest.substr(0, end);
      rest.remove_prefix(std::min(end + 1, rest.size()));
      if (!root.empty() && is_given(root, key)) return true;
    }
    return false;
  }

  // The index of the installation names each slot with the commit and the C++ ABI of the torch that it is for.
  bool among_slots(const char* own_libraries) const noexcept {
    if (own_libraries[0] == '\0') return false;
    const FixedPath directory = path_in(own_libraries, "hooks");
    const MappedFile index(path_in(directory.view(), "index").c_str());
    std::string_view text = index.text();
    if (text.empty()) return false;
    if (!is_of_these_sources(take_line(&text))) {
      pass_over(directory, "they were compiled from other sources than this devsan");
      return false;
    }
    while (!text.empty()) {
      std::string_view line = take_line(&text);
      const std::string_view commit = take_word(&line);
      const std::string_view abi = take_word(&line);
      const std::string_view slot = take_word(&line);
      if (commit.empty() || commit != choice_->torch.git_version.view() || abi != name_of(choice_->torch.abi)) continue;
      if (slot.empty() || slot.find('/') != std::string_view::npos || slot.starts_with('.')) continue;
      if (is_slot(path_in(directory.view(), slot))) return true;
    }
    return false;
  }

  bool in_cache() const noexcept {
    choice_->cached = locate_hooks(libtorch_cpu_, &choice_->cache);
    return choice_->cached == HooksState::ready && take(HooksPlace::cache, FixedPath(choice_->cache.directory));
  }

 private:
  bool take(HooksPlace place, const FixedPath& directory) const noexcept {
    choice_->place = place;
    choice_->directory = directory;
    return true;
  }

  bool pass_over(const FixedPath& directory, const char* why) const noexcept {
    FixedText<2 * kPathSize> sentence;
    sentence.append("skipped the hooks in ").append(directory.view()).append(": ").append(why);
    complaints_.tell(sentence.c_str(), complaints_.context);
    return false;
  }

  bool is_given(std::string_view root, const char* key) const noexcept {
    const FixedPath directory = path_in(root, key);
    if (!is_there(directory.c_str())) return false;
    if (!is_trusted_directory(FixedPath(root).c_str()) || !is_trusted_directory(directory.c_str())) {
      return pass_over(directory,
                       "a folder of DEVSAN_HOOKS_PATH must belong to root or to you, and nobody else may write to it");
    }
    Reason why;
    if (!hooks_are_whole(directory.c_str(), &why)) return pass_over(directory, why.c_str());
    return take(HooksPlace::given, directory);
  }

  bool is_slot(const FixedPath& directory) const noexcept {
    Reason why;
    if (!hooks_fit(directory.c_str(), parent_path(libtorch_cpu_, 1).c_str(), &why)) {
      return pass_over(directory, why.c_str());
    }
    return take(HooksPlace::slot, directory);
  }

  static bool is_of_these_sources(std::string_view first_line) noexcept {
    return first_line.starts_with(kIndexFormat) && first_line.substr(kIndexFormat.size()) == kHooksSources;
  }

  const char* libtorch_cpu_;
  const Complaints& complaints_;
  HooksChoice* choice_;
};

}  // namespace

void choose_hooks(const char* libtorch_cpu, const char* own_libraries, const Complaints& complaints,
                  HooksChoice* choice) noexcept {
  choice->torch = identify_torch(libtorch_cpu);
  choice->torch_is_too_old = is_older(choice->torch.version.c_str(), kOldestTorchMajor, kOldestTorchMinor);
  make_cache_key(libtorch_cpu, &choice->cache);
  if (choice->torch_is_too_old) return;
  const Search search(libtorch_cpu, complaints, choice);
  if (!search.among_given() && !search.among_slots(own_libraries)) search.in_cache();
}

const char* name_of(HooksPlace place) noexcept {
  switch (place) {
    case HooksPlace::given:
      return "DEVSAN_HOOKS_PATH";
    case HooksPlace::slot:
      return "slot";
    case HooksPlace::cache:
      return "cache";
    case HooksPlace::none:
      break;
  }
  return "none";
}

}  // namespace devsan

#include "preload/hooks_fit.h"

#include <unistd.h>

#include <optional>

#include "preload/elf_file.h"
#include "preload/hooks_cache.h"

namespace devsan {
namespace {

constexpr std::size_t kMaxTorchLibraries = 8;

// The libraries of torch that a library is linked with.
class TorchLibraries {
 public:
  // False where one of them is not there.
  bool open(const ElfFile& library, const char* directory, Reason* why) noexcept {
    return !library.any_needed([&](const char* name) {
      const std::string_view text = name;
      if (!text.starts_with("libtorch") && !text.starts_with("libc10")) return false;
      if (count_ == kMaxTorchLibraries) return true;
      const ElfFile& opened = libraries_[count_++].emplace(path_in(directory, text).c_str());
      if (opened.sound()) return false;
      why->append("torch has no ").append(text);
      return true;
    });
  }

  bool export_one(const char* symbol) const noexcept {
    for (std::size_t i = 0; i < count_; ++i) {
      if (libraries_[i]->exports(symbol)) return true;
    }
    return false;
  }

 private:
  std::optional<ElfFile> libraries_[kMaxTorchLibraries];
  std::size_t count_ = 0;
};

// Defined by libdevsan.so.
bool is_own(std::string_view symbol) noexcept {
  return symbol.starts_with("devsan_") || symbol.find("6devsan") != std::string_view::npos;
}

bool is_whole(const ElfFile& library, const char* name, Reason* why) noexcept {
  if (library.whole()) return true;
  why->append(name).append(" is incomplete");
  return false;
}

bool fits(const ElfFile& library, const char* torch_libraries, Reason* why) noexcept {
  TorchLibraries torch;
  if (!torch.open(library, torch_libraries, why)) return false;
  return !library.any_undefined_without_version([&](const char* symbol) {
    if (is_own(symbol) || torch.export_one(symbol)) return false;
    why->append("torch has no ").append(symbol);
    return true;
  });
}

template <typename Check>
bool check_libraries(const char* directory, Check check) noexcept {
  for (const char* name : {kHooksLibrary, kSimLibrary}) {
    if (name == kSimLibrary && !has_simulation(directory)) continue;
    if (!check(ElfFile(path_in(directory, name).c_str()), name)) return false;
  }
  return true;
}

}  // namespace

bool has_simulation(const char* directory) noexcept {
  return access(path_in(directory, kSimLibrary).c_str(), F_OK) == 0;
}

bool hooks_are_whole(const char* directory, Reason* why) noexcept {
  return check_libraries(directory, [&](const ElfFile& file, const char* name) { return is_whole(file, name, why); });
}

bool hooks_fit(const char* directory, const char* torch_libraries, Reason* why) noexcept {
  return check_libraries(directory, [&](const ElfFile& file, const char* name) {
    return is_whole(file, name, why) && fits(file, torch_libraries, why);
  });
}

}  // namespace devsan

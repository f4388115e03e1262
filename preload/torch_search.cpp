#include "preload/torch_search.h"

#include "preload/elf_image.h"

namespace devsan {
namespace {

constexpr std::string_view kTorchLibrary = "/libtorch_cpu.so";

std::string_view file_name(std::string_view path) noexcept {
  return path.substr(path.rfind('/') + 1);
}

std::string_view directory_of(std::string_view path) noexcept {
  return path.substr(0, file_name(path).data() - path.data());
}

// Libraries that are initialised after libtorch_cpu: they need it, or are it.
bool is_torch_library(std::string_view path) noexcept {
  const std::string_view file = file_name(path);
  return file.starts_with("libtorch") && !file.starts_with("libtorch_global_deps");
}

constexpr int kMaxDependencyDepth = 3;

// What everything is linked with, and no torch behind it: not worth following.
bool is_runtime(std::string_view name) noexcept {
  for (const std::string_view start : {"ld-linux", "libc.so", "libm.so", "libdl.so", "libpthread.so", "librt.so",
                                       "libgcc_s.so", "libstdc++.so", "libpython"}) {
    if (name.starts_with(start)) return true;
  }
  return false;
}

// In the loader's lock, so that the list stays as it is.
bool needs_torch(const link_map* object, int depth) noexcept {
  const ElfImage image(object->l_addr, object->l_ld);
  return image.any_needed([&](std::string_view needed) {
    if (is_torch_library(needed)) return true;
    if (depth == kMaxDependencyDepth || is_runtime(needed)) return false;
    for (const link_map* other = _r_debug.r_map; other != nullptr; other = other->l_next) {
      if (file_name(other->l_name) == needed) return needs_torch(other, depth + 1);
    }
    return false;
  });
}

}  // namespace

LoaderCounts loader_counts() noexcept {
  LoaderCounts counts;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        *static_cast<LoaderCounts*>(out) = {info->dlpi_adds, info->dlpi_subs};
        return 1;
      },
      &counts);
  return counts;
}

TorchSighting look_for_torch(const void* code) noexcept {
  struct Search {
    std::uintptr_t code;
    TorchSighting seen;
    std::string_view code_object;  // as long as the loader's lock is held
    std::string_view torch_object;
  } search{reinterpret_cast<std::uintptr_t>(code), {}, {}, {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto& [address, seen, code_object, torch_object] = *static_cast<Search*>(data);
        const std::string_view name = info->dlpi_name;
        if (seen.library.empty() && name.ends_with(kTorchLibrary)) {
          seen.library.append(name);
          torch_object = name;
        }
        if (!seen.code_found && address != 0 && holds(*info, reinterpret_cast<const void*>(address))) {
          seen.code_found = true;
          seen.code_index = seen.objects;
          seen.code_uses_torch = ElfImage(*info).any_needed(is_torch_library);
          code_object = name;
        }
        ++seen.objects;
        // Torch's own libraries need each other, so that one runs says nothing about the others.
        if (!torch_object.empty() && directory_of(code_object) == directory_of(torch_object)) {
          seen.code_uses_torch = false;
        }
        return 0;
      },
      &search);
  return search.seen;
}

bool leads_to_torch(const void* handle) noexcept {
  struct Search {
    const void* handle;
    bool found;
  } search{handle, false};
  dl_iterate_phdr(
      [](dl_phdr_info*, std::size_t, void* data) {
        auto& [wanted, found] = *static_cast<Search*>(data);
        for (const link_map* object = _r_debug.r_map; object != nullptr; object = object->l_next) {
          if (object == wanted) found = is_torch_library(object->l_name) || needs_torch(object, 1);
        }
        return 1;
      },
      &search);
  return search.found;
}

}  // namespace devsan

// Where the hooks for one libtorch lie in a cache: `devsan build` puts them there, libdevsan.so loads them from there,
// and both ask this file. It runs inside the traced process as well, so it takes no memory from the heap, throws
// nothing, and starts nothing.
#pragma once

#include <cstddef>

#include "preload/path_text.h"

namespace devsan {

inline constexpr char kHooksLibrary[] = "libdevsan_torch.so";
inline constexpr char kSimLibrary[] = "libdevsan_sim.so";
// The oldest torch that hooks can be compiled for.
inline constexpr int kOldestTorchMajor = 2;
inline constexpr int kOldestTorchMinor = 6;
// The first torch that has the interfaces the simulation is made of. For an older one there are hooks only.
inline constexpr int kSimTorchMajor = 2;
inline constexpr int kSimTorchMinor = 11;
inline constexpr std::size_t kCachePathSize = kPathSize;
inline constexpr std::size_t kCacheKeySize = 160;

struct HooksLocation {
  char root[kCachePathSize];       // the cache
  char key[kCacheKeySize];         // devsan's version, the id of the hooks' sources, libtorch_cpu's build-id
  char directory[kCachePathSize];  // root/key; the two libraries lie in it
};

enum class HooksState {
  ready,        // `directory` holds hooks
  missing,      // nothing was built yet; all of `location` is filled in
  no_home,      // neither XDG_CACHE_HOME nor a home directory
  no_build_id,  // the file cannot be read, or has no build-id
  not_private,  // the cache, or the folder in it, belongs to another user or can be written by others
};

// `libtorch_cpu` is the path of the library that the hooks are for. A build-id names one link of one build, and with it
// its C++ ABI, so nothing else of torch has to be in the key. Hooks that are not in the user's cache are looked for in
// the temporary one; where there are none, `location` is that in the user's cache.
HooksState locate_hooks(const char* libtorch_cpu, HooksLocation* location) noexcept;

// Fills in the name under which hooks for that library lie in whatever cache; false where it has no build-id.
bool make_cache_key(const char* libtorch_cpu, HooksLocation* location) noexcept;

// Moves a location whose key is known into the cache at `root`, and looks at what is there.
HooksState look_in_cache(const char* root, HooksLocation* location) noexcept;

// The user's cache: $XDG_CACHE_HOME/devsan, or ~/.cache/devsan, whether it exists or not; false without a home.
bool find_cache_root(char* root, std::size_t size) noexcept;

// That for a user whose own cache cannot be written: $TMPDIR/devsan-<uid>, or the same in /tmp.
bool find_temporary_root(char* root, std::size_t size) noexcept;

// A directory (not a link to one) of this process's effective user that nobody else can write.
bool is_private_directory(const char* path) noexcept;

// The build-id of an ELF file in lower-case hexadecimal digits; false where there is none.
bool read_build_id(const char* elf_file, char* digits, std::size_t size) noexcept;

// What the hooks were compiled from: "0.1.0 0123456789abcdef".
extern const char kHooksSources[];

}  // namespace devsan

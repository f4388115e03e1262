// Who holds something in the cache. The cache may lie on a file system that several machines share, and a process may
// have a namespace of process ids of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace devsan::launch {

struct Owner {
  std::string host;     // for people
  std::string machine;  // where its process id means something: a boot of a machine, and a namespace of process ids
  int pid = 0;
  std::uint64_t start = 0;  // of the process, in clock ticks, since two may have one id, one after the other
  std::string random;       // no other owner has the same

  // This process, as an owner of something new.
  static Owner current();

  // "node7.5c0fb1d2.4711.883122.9f3a01bc"; none where `text` is not such a thing.
  std::string text() const;
  static std::optional<Owner> parse(std::string_view text);
};

enum class Life { alive, dead, elsewhere };

// What this process can tell of another one; `elsewhere` where it cannot be asked.
Life life_of(const Owner& owner);

}  // namespace devsan::launch

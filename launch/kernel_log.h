// The kernel's own messages of the processes that it has killed for memory.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string_view>

namespace devsan::launch {

// The process that one record of /dev/kmsg says was killed for memory, by its pid in the machine's own namespace; none
// where it says something else, or where a program has written it and not the kernel.
std::optional<std::uint32_t> killed_for_memory(std::string_view record);

// What the kernel logs from now on. Often it may not be read, and in a container it knows processes by other pids: then
// it says nothing. Not safe for use by several threads.
class KernelLog {
 public:
  KernelLog();
  ~KernelLog();
  KernelLog(const KernelLog&) = delete;
  KernelLog& operator=(const KernelLog&) = delete;

  // The pids of those that were killed for memory since the last call, or since this was made.
  std::set<std::uint32_t> killed_for_memory();

 private:
  int fd_ = -1;
};

}  // namespace devsan::launch

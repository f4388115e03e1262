#include "hooks/inprocess/common/own_memory.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace devsan::hooks {

namespace {

constexpr std::size_t kAtOnce = 256;  // the kernel takes 1,024; they lie on the stack

// How many of the first addresses could be read, of kAtOnce at most; -1 where nothing may be read at all.
std::ptrdiff_t read_some(std::span<const char* const> addresses, std::span<std::uint64_t> words) noexcept {
  std::array<iovec, kAtOnce> remote;
  const std::size_t count = std::min(addresses.size(), kAtOnce);
  for (std::size_t k = 0; k < count; ++k) remote[k] = {const_cast<char*>(addresses[k]), sizeof(std::uint64_t)};
  const iovec local = {words.data(), count * sizeof(std::uint64_t)};
  const ssize_t bytes = ::process_vm_readv(::getpid(), &local, 1, remote.data(), count, 0);
  if (bytes < 0) return errno == EFAULT ? 0 : -1;
  return bytes / static_cast<ssize_t>(sizeof(std::uint64_t));
}

}  // namespace

bool read_own_words(std::span<const char* const> addresses, std::span<std::uint64_t> words) noexcept {
  std::ranges::fill(words, 0);
  const int error = errno;
  std::size_t done = 0;
  bool allowed = true;
  while (done < addresses.size() && allowed) {
    const std::ptrdiff_t read = read_some(addresses.subspan(done), words.subspan(done));
    allowed = read >= 0;
    const std::size_t asked = std::min(addresses.size() - done, kAtOnce);
    const auto good = static_cast<std::size_t>(std::max<std::ptrdiff_t>(read, 0));
    if (good < asked && allowed) words[done + good] = 0;  // perhaps half of it was read
    done += good < asked ? good + 1 : good;
  }
  errno = error;
  return allowed;
}

}  // namespace devsan::hooks

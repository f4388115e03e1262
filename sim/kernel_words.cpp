#include "sim/kernel_words.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <typeinfo>
#include <vector>

namespace devsan::sim {
namespace {

constexpr int kAssert = 710;  // cudaErrorAssert
constexpr std::string_view kHole = "{}";

struct Words {
  std::string_view op;
  std::string_view host;
  std::string_view device;
};

constexpr Words kWords[] = {
#define DEVSAN_KERNEL_WORDS(op, host, device) {op, host, device},
#include "sim/kernel_words.def"
#undef DEVSAN_KERNEL_WORDS
};

constexpr Words kAsserts[] = {
#define DEVSAN_DEVICE_ASSERT(op, host) {op, host, {}},
#include "sim/device_asserts.def"
#undef DEVSAN_DEVICE_ASSERT
};

std::atomic<bool> g_is_broken{false};

[[noreturn]] void raise_assert(const std::string& cause) {
  throw c10::AcceleratorError({__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, kAssert,
                              "CUDA error: device-side assert triggered\n" + cause);
}

std::size_t next_hole(std::string_view pattern) {
  return std::min(pattern.find(kHole), pattern.size());
}

std::string_view after_hole(std::string_view pattern) {
  return pattern.substr(std::min(pattern.size(), next_hole(pattern) + kHole.size()));
}

// The texts in a pattern's holes; nothing where the words are others.
std::optional<std::vector<std::string>> holes_in(std::string_view words, std::string_view pattern) {
  std::vector<std::string> holes;
  std::string_view literal = pattern.substr(0, next_hole(pattern));
  if (!words.starts_with(literal)) return std::nullopt;
  words.remove_prefix(literal.size());
  while (next_hole(pattern) != pattern.size()) {
    pattern = after_hole(pattern);
    literal = pattern.substr(0, next_hole(pattern));
    const std::size_t end = literal.empty() ? words.size() : words.find(literal);
    if (end == words.npos) return std::nullopt;
    holes.emplace_back(words.substr(0, end));
    words.remove_prefix(end + literal.size());
  }
  if (!words.empty()) return std::nullopt;
  return holes;
}

std::string filled(std::string_view pattern, const std::vector<std::string>& holes) {
  std::string text;
  for (const std::string& hole : holes) {
    text += pattern.substr(0, next_hole(pattern));
    if (next_hole(pattern) == pattern.size()) return text;
    text += hole;
    pattern = after_hole(pattern);
  }
  return text.append(pattern);
}

}  // namespace

void check_context() {
  if (g_is_broken.load(std::memory_order_relaxed)) raise_assert("An earlier operator of this process failed.\n");
}

void restore_context() noexcept {
  g_is_broken.store(false, std::memory_order_relaxed);
}

void rethrow_as_cuda(const c10::OperatorHandle& op, const c10::Error& error) {
  const std::string_view name = op.operator_name().name;
  const std::string said = error.what_without_backtrace();
  for (const Words& words : kAsserts) {
    if (words.op != name || !holes_in(said, words.host)) continue;
    g_is_broken.store(true, std::memory_order_relaxed);
    raise_assert("The CPU's kernel of " + std::string(name) + " says: " + said + "\n");
  }
  if (typeid(error) != typeid(c10::Error)) throw;
  for (const Words& words : kWords) {
    if (words.op != name) continue;
    if (const auto holes = holes_in(said, words.host)) {
      throw c10::Error({__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, filled(words.device, *holes));
    }
  }
  throw;
}

}  // namespace devsan::sim

#include "launch/owner.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <random>

#include "launch/file_text.h"
#include "trace/process_info.h"

namespace devsan::launch {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kFields = 5;

std::string hexadecimal(std::size_t number) {
  char digits[24];
  std::snprintf(digits, sizeof digits, "%08x", static_cast<unsigned>(number));
  return digits;
}

// A host's name may have dots, which stand between the fields.
std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "host";
  std::string text = name.data();
  for (char& c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '-';
  }
  return text.empty() ? "host" : text.substr(0, 64);
}

std::string this_machine() {
  std::error_code ignored;
  const std::string processes = fs::read_symlink("/proc/self/ns/pid", ignored).string();
  return hexadecimal(
      std::hash<std::string>{}(text_of_file("/proc/sys/kernel/random/boot_id") + processes + host_name()));
}

template <typename Number>
bool read_number(std::string_view text, Number* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

Owner Owner::current() {
  std::random_device random;
  return {host_name(), this_machine(), getpid(), trace::start_ticks_of(static_cast<std::uint32_t>(getpid())),
          hexadecimal(random())};
}

std::string Owner::text() const {
  return host + "." + machine + "." + std::to_string(pid) + "." + std::to_string(start) + "." + random;
}

std::optional<Owner> Owner::parse(std::string_view text) {
  std::array<std::string_view, kFields> fields;
  for (std::size_t i = 0; i < kFields; ++i) {
    const std::size_t end = i + 1 < kFields ? text.find('.') : text.size();
    if (end == std::string_view::npos) return std::nullopt;
    fields[i] = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  Owner owner{std::string(fields[0]), std::string(fields[1]), 0, 0, std::string(fields[4])};
  const bool whole = !owner.host.empty() && !owner.machine.empty() && !owner.random.empty();
  if (!whole || !read_number(fields[2], &owner.pid) || !read_number(fields[3], &owner.start)) return std::nullopt;
  return owner;
}

Life life_of(const Owner& owner) {
  if (owner.machine != this_machine()) return Life::elsewhere;
  const bool lives = owner.start != 0 && trace::start_ticks_of(static_cast<std::uint32_t>(owner.pid)) == owner.start;
  return lives ? Life::alive : Life::dead;
}

}  // namespace devsan::launch

#include "launch/environment.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>

namespace devsan::launch {
namespace {

std::string_view base_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

bool is_ours(std::string_view entry) {
  const std::string_view name = base_name(entry);
  return name == "libdevsan.so" || (name.starts_with("libdevsan-") && name.ends_with(".so"));
}

bool is_sanitizer_runtime(std::string_view entry) {
  constexpr std::array<std::string_view, 6> kPrefixes = {
      "libasan.", "libtsan.", "liblsan.", "libubsan.", "libhwasan.", "libclang_rt.",
  };
  const std::string_view name = base_name(entry);
  return std::any_of(kPrefixes.begin(), kPrefixes.end(), [&](auto prefix) { return name.starts_with(prefix); });
}

std::string absolute(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal().string();
}

}  // namespace

Environment Environment::inherited() {
  Environment copy;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) copy.entries_.emplace_back(*entry);
  return copy;
}

std::optional<std::string> Environment::get(std::string_view name) const {
  for (const std::string& entry : entries_) {
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=') {
      return entry.substr(name.size() + 1);
    }
  }
  return std::nullopt;
}

void Environment::set(std::string_view name, std::string_view value) {
  std::string made = std::string(name) + '=' + std::string(value);
  for (std::string& entry : entries_) {
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=') {
      entry = std::move(made);
      return;
    }
  }
  entries_.push_back(std::move(made));
}

std::vector<char*> Environment::for_exec() {
  std::vector<char*> pointers;
  for (std::string& entry : entries_) pointers.push_back(entry.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::string merge_preload(std::string_view existing, const std::string& ours) {
  std::string before;
  std::string after;
  while (!existing.empty()) {
    const std::size_t end = std::min(existing.find_first_of(" :"), existing.size());
    const std::string_view entry = existing.substr(0, end);
    existing.remove_prefix(std::min(end + 1, existing.size()));
    if (entry.empty() || is_ours(entry)) continue;
    if (is_sanitizer_runtime(entry)) {
      before.append(entry).append(":");
    } else {
      after.append(":").append(entry);
    }
  }
  return before + ours + after;
}

trace::ParsedOptions merge_options(std::string_view existing, const RunFlags& flags, const std::string& default_out) {
  trace::ParsedOptions merged = trace::parse_options(existing);
  trace::Options& options = merged.options;
  if (flags.sim) options.sim = *flags.sim;
  if (flags.sim_memory) options.sim_memory = *flags.sim_memory;
  if (flags.out) options.out = *flags.out;
  if (flags.suppressions) options.suppressions = *flags.suppressions;
  if (flags.sim_late_copies) options.sim_late_copies = true;
  if (flags.sim_guard) options.sim_guard = true;
  if (flags.halt) options.halt = true;
  if (flags.hang_after) options.hang_after = *flags.hang_after;
  if (flags.quiet) options.quiet = true;
  if (flags.stop_after > 0) options.stop_after = flags.stop_after;
  if (options.out.empty()) options.out = default_out;
  options.out = absolute(options.out);
  if (!options.rules.empty()) options.rules = absolute(options.rules);
  if (!options.suppressions.empty()) options.suppressions = absolute(options.suppressions);
  return merged;
}

}  // namespace devsan::launch

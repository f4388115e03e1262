#include "report/why/host_names.h"

#include <algorithm>
#include <array>

namespace devsan::report::why {

bool says_host(std::string_view name) {
  constexpr std::array<std::string_view, 2> kWords = {"cpu", "host"};
  const auto stands = [name](std::string_view word) {
    for (std::size_t at = name.find(word); at != name.npos; at = name.find(word, at + 1)) {
      const std::size_t behind = at + word.size();
      const bool begins = at == 0 || name[at - 1] == '_' || name[at - 1] == '.';
      // `host_ids` may well be those of a machine, unless there are `ids` beside them.
      const bool last = behind == name.size() || name[behind] == '[';
      const bool ends = last || (word == "cpu" && name[behind] == '_');
      if (begins && ends) return true;
    }
    return false;
  };
  return std::ranges::any_of(kWords, stands);
}

bool says_accelerator(std::string_view name, std::string_view original) {
  constexpr std::array<std::string_view, 6> kWords = {"cuda", "gpu", "dev", "device", "d", "g"};
  if (original.empty() || name.size() < original.size() + 2) return false;
  const auto is_word = [&](std::string_view rest) { return std::ranges::find(kWords, rest) != kWords.end(); };
  const std::size_t more = name.size() - original.size();
  const bool behind = name.starts_with(original) && name[original.size()] == '_';
  const bool before = name.ends_with(original) && name[more - 1] == '_';
  return (behind && is_word(name.substr(original.size() + 1))) || (before && is_word(name.substr(0, more - 1)));
}

bool moves_to_store(const Frame& place) {
  constexpr std::array<std::string_view, 4> kNames = {"storage", "offload", "store_device", "cache_device"};
  const std::string& text = place.statement();
  const std::size_t move = text.find(".to(");
  const std::string_view target = move == text.npos ? std::string_view() : std::string_view(text).substr(move);
  const auto named = [target](std::string_view name) { return target.find(name) != target.npos; };
  return std::ranges::any_of(kNames, named);
}

}  // namespace devsan::report::why

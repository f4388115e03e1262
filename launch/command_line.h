// How the words of `devsan run` are told from those of the user's command.
#pragma once

#include <string>
#include <vector>

namespace devsan::launch {

// Words of `devsan run` cut where the user's command begins: after the first `--`, or at the first word that is neither
// an option nor the value of one. `takes_value` says of an option's name whether the next word is its value.
struct RunWords {
  std::vector<std::string> options;
  std::vector<std::string> command;
};
template <typename TakesValue>
RunWords split_run_words(const std::vector<std::string>& words, TakesValue takes_value) {
  RunWords split;
  std::size_t at = 0;
  while (at < words.size() && words[at].starts_with('-') && words[at] != "--") {
    split.options.push_back(words[at]);
    const bool has_value = words[at].find('=') == std::string::npos && takes_value(words[at]);
    if (has_value && at + 1 < words.size() && words[at + 1] != "--") split.options.push_back(words[++at]);
    ++at;
  }
  if (at < words.size() && words[at] == "--") ++at;
  split.command.assign(words.begin() + static_cast<std::ptrdiff_t>(at), words.end());
  return split;
}

}  // namespace devsan::launch

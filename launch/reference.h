// The command line as CLI11 knows it, read once, from which the man page and the completions of shells are made.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace devsan::launch {

struct OptionText {
  std::vector<std::string> names;  // "-h", "--help"; of a positional what --help calls it
  std::string value;               // "FILE"; "" for a flag
  bool value_may_lack = false;
  std::string help;
  bool is_list = false;  // takes several values
};

struct CommandText {
  std::string name;
  std::string help;
  std::string footer;
  bool takes_command = false;  // what follows the options is a command of the user's
  std::vector<OptionText> options;
  std::vector<OptionText> positionals;
};

// The words that a value may be, by how --help names the value.
using ValueWords = std::map<std::string, std::vector<std::string>>;

struct Reference {
  std::string version;
  std::vector<CommandText> commands;
  std::vector<OptionText> options;
  ValueWords words;
};

Reference read_reference(const CLI::App& app, std::string version, ValueWords words);

std::string man_page(const Reference& reference);
std::string bash_completion(const Reference& reference);
std::string zsh_completion(const Reference& reference);
std::string fish_completion(const Reference& reference);

// Writes them below `share` to where man and the shells look for them. Throws Failure.
void write_reference(const Reference& reference, const std::filesystem::path& share);

}  // namespace devsan::launch

#include "launch/target_python.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace devsan::launch {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kScriptHead = 1024;

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  while (true) {
    const std::size_t start = line.find_first_not_of(" \t\r");
    if (start == std::string_view::npos) return words;
    line.remove_prefix(start);
    const std::size_t end = std::min(line.find_first_of(" \t\r"), line.size());
    words.emplace_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

std::string program_name(std::string_view path) {
  return fs::path(path).filename().string();
}

bool is_program(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

// The program that `env` would start: its first argument that is neither an option nor an assignment.
std::optional<std::string> program_of_env(const std::vector<std::string>& words) {
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "-u" || word == "-C") {
      ++i;
    } else if (!word.starts_with('-') && word.find('=') == std::string::npos) {
      return word;
    }
  }
  return std::nullopt;
}

std::string head_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string head(kScriptHead, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return head;
}

// pip writes this where the interpreter's path is too long for a first line, or has a space in it:
//   #!/bin/sh
//   '''exec' "/a path/python" "$0" "$@"
std::optional<std::string> python_of_pip_trick(std::string_view text) {
  constexpr std::string_view kExec = "'''exec' ";
  const std::size_t at = text.find(kExec);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = text.substr(at + kExec.size());
  const char stop = rest.starts_with('"') ? '"' : ' ';
  if (stop == '"') rest.remove_prefix(1);
  const std::string path(rest.substr(0, rest.find(stop)));
  return is_python_name(path) ? std::optional(path) : std::nullopt;
}

std::optional<std::string> python_of_file(const std::string& name) {
  const std::optional<std::string> file = find_program(name);
  if (!file) return std::nullopt;
  const std::optional<std::string> named = python_of_script(head_of(*file));
  return named ? find_program(*named) : std::nullopt;
}

std::optional<std::string> python_of_words(const std::vector<std::string>& words) {
  if (words.empty()) return std::nullopt;
  if (is_python_name(words[0])) return find_program(words[0]);
  if (program_name(words[0]) != "env") return python_of_file(words[0]);
  const std::optional<std::string> started = program_of_env(words);
  return started ? python_of_words({*started}) : std::nullopt;
}

}  // namespace

std::optional<std::string> find_program(std::string_view name) {
  if (name.empty()) return std::nullopt;
  if (name.find('/') != std::string_view::npos) {
    return is_program(name) ? std::optional(fs::absolute(name).string()) : std::nullopt;
  }
  const char* variable = std::getenv("PATH");
  std::string_view path = variable != nullptr ? variable : "/bin:/usr/bin";
  while (true) {
    const std::size_t end = std::min(path.find(':'), path.size());
    const fs::path directory = end == 0 ? fs::path(".") : fs::path(path.substr(0, end));
    if (is_program(directory / name)) return fs::absolute(directory / name).string();
    if (end == path.size()) return std::nullopt;
    path.remove_prefix(end + 1);
  }
}

bool is_python_name(std::string_view path) {
  std::string name = program_name(path);
  for (const std::string_view prefix : {"python", "pypy"}) {
    if (!name.starts_with(prefix)) continue;
    return name.find_first_not_of("0123456789.t", prefix.size()) == std::string::npos;
  }
  return false;
}

std::optional<std::string> python_of_script(std::string_view text) {
  if (!text.starts_with("#!")) return std::nullopt;
  const std::vector<std::string> words = words_of(text.substr(2, text.find('\n') - 2));
  if (words.empty()) return std::nullopt;
  if (is_python_name(words[0])) return words[0];
  if (program_name(words[0]) == "env") {
    const std::optional<std::string> started = program_of_env(words);
    return started && is_python_name(*started) ? started : std::nullopt;
  }
  return program_name(words[0]) == "sh" ? python_of_pip_trick(text) : std::nullopt;
}

std::optional<std::string> find_python(const std::vector<std::string>& command) {
  if (std::optional<std::string> direct = python_of_words(command)) return direct;
  for (std::size_t i = 1; i < command.size(); ++i) {
    if (!is_python_name(command[i])) continue;
    if (std::optional<std::string> found = find_program(command[i])) return found;
  }
  return find_program("python3");
}

std::optional<CertainPython> find_certain_python(const std::vector<std::string>& command) {
  if (command.empty()) return std::nullopt;
  // Options and assignments may change what `env` finds.
  const std::size_t first = program_name(command[0]) == "env" && command.size() > 1 ? 1 : 0;
  if (is_python_name(command[first])) {
    const std::optional<std::string> python = find_program(command[first]);
    return python ? std::optional(CertainPython{*python, false}) : std::nullopt;
  }
  if (std::any_of(command.begin(), command.end(), is_python_name)) return std::nullopt;
  const std::optional<std::string> python = python_of_file(command[first]);
  return python ? std::optional(CertainPython{*python, true}) : std::nullopt;
}

}  // namespace devsan::launch

#include "preload/run_info.h"

#include <fcntl.h>
#include <unistd.h>

#include <climits>

#include "trace/secret_names.h"

namespace devsan {
namespace {

constexpr std::string_view kMask = "***";

bool is_name_character(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
}

// The end of the value that starts at `at`: its closing quote, or where the next word or parameter starts.
std::size_t end_of_value(std::string_view text, std::size_t at) noexcept {
  if (at < text.size() && (text[at] == '"' || text[at] == '\'')) {
    const std::size_t close = text.find(text[at], at + 1);
    return close == std::string_view::npos ? text.size() : close + 1;
  }
  const std::size_t end = text.find_first_of(" \t\n&;,", at);
  return end == std::string_view::npos ? text.size() : end;
}

// NAME=VALUE and NAME: VALUE anywhere in an argument, which may be a whole program (python -c).
template <std::size_t kSize>
void mask_assignments(std::string_view text, FixedText<kSize>* out) noexcept {
  std::size_t copied = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '=' && text[at] != ':') continue;
    std::size_t name_end = at;
    while (name_end > copied &&
           (text[name_end - 1] == ' ' || text[name_end - 1] == '"' || text[name_end - 1] == '\'')) {
      --name_end;
    }
    std::size_t name = name_end;
    while (name > copied && is_name_character(text[name - 1])) --name;
    if (!trace::names_secret(text.substr(name, name_end - name))) continue;
    std::size_t value = at + 1;
    while (value < text.size() && text[value] == ' ') ++value;
    if (text.substr(value, 7) == "Bearer ") value += 7;
    if (value == text.size() || text.substr(value, 2) == "//") continue;
    out->append(text.substr(copied, value - copied)).append(kMask);
    copied = end_of_value(text, value);
    at = copied - 1;
  }
  out->append(text.substr(copied));
}

// scheme://user:password@host
template <std::size_t kSize>
void mask_urls(std::string_view text, FixedText<kSize>* out) noexcept {
  std::size_t copied = 0;
  for (;;) {
    const std::size_t scheme = text.find("://", copied);
    if (scheme == std::string_view::npos) break;
    const std::size_t user = scheme + 3;
    std::size_t end = text.find_first_of("/ \t\n?#\"'", user);
    if (end == std::string_view::npos) end = text.size();
    const std::size_t at_sign = text.substr(0, end).rfind('@');
    const std::size_t colon = text.find(':', user);
    if (at_sign != std::string_view::npos && at_sign > user && colon < at_sign) {
      out->append(text.substr(copied, colon + 1 - copied)).append(kMask);
      copied = at_sign;
    } else {
      out->append(text.substr(copied, user - copied));
      copied = user;
    }
  }
  out->append(text.substr(copied));
}

// `masked` as a shell would need `argument` quoted: the asterisks of a mask are ours.
void append_quoted(std::string_view argument, std::string_view masked, CommandText* out) noexcept {
  if (!argument.empty() && argument.find_first_of(" \t\n'\"\\$`&|;<>()*?[]{}~#!") == std::string_view::npos) {
    out->append(masked);
    return;
  }
  out->append("'");
  for (const char& c : masked) out->append(c == '\'' ? std::string_view("'\\''") : std::string_view(&c, 1));
  out->append("'");
}

std::size_t read_file(const char* path, char* text, std::size_t size) noexcept {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  std::size_t filled = 0;
  ssize_t got = 0;
  while (filled < size && (got = read(file, text + filled, size - filled)) > 0) filled += static_cast<std::size_t>(got);
  close(file);
  return filled;
}

// __version__ in the package's version.py, or the file build-version of LibTorch.
void add_torch_version(trace::Recorder* recorder, const char* torch_home) noexcept {
  char text[2048];
  FixedText<PATH_MAX> path(torch_home);
  path.append("/version.py");
  const std::string_view python(text, read_file(path.c_str(), text, sizeof text));
  const std::size_t name = python.find("__version__ = '");
  if (name != std::string_view::npos) {
    const std::string_view rest = python.substr(name + 15);
    recorder->add_run_info("torch", rest.substr(0, rest.find('\'')));
    return;
  }
  path.clear();
  path.append(torch_home).append("/build-version");
  const std::string_view version(text, read_file(path.c_str(), text, sizeof text));
  if (!version.empty()) recorder->add_run_info("torch", version.substr(0, version.find('\n')));
}

}  // namespace

CommandText masked_command(std::string_view arguments) noexcept {
  CommandText command;
  bool mask_whole = false;
  while (!arguments.empty()) {
    const std::size_t length = arguments.find('\0') == std::string_view::npos ? arguments.size() : arguments.find('\0');
    const std::string_view argument = arguments.substr(0, length);
    arguments.remove_prefix(length < arguments.size() ? length + 1 : length);
    if (!command.empty()) command.append(" ");
    const bool is_option = !argument.empty() && argument[0] == '-';
    if (mask_whole && !is_option) {
      command.append(kMask);
      mask_whole = false;
      continue;
    }
    mask_whole = is_option && argument.find('=') == std::string_view::npos && trace::names_secret(argument);
    CommandText without_urls;
    CommandText masked;
    mask_urls(argument, &without_urls);
    mask_assignments(without_urls.view(), &masked);
    append_quoted(argument, masked.view(), &command);
  }
  return command;
}

void write_run_info(trace::Recorder* recorder, const char* torch_home, const char* python_version) noexcept {
  char text[8192];
  recorder->add_run_info("command", masked_command({text, read_file("/proc/self/cmdline", text, sizeof text)}).view());
  const ssize_t length = readlink("/proc/self/exe", text, sizeof text);
  if (length > 0) recorder->add_run_info("executable", {text, static_cast<std::size_t>(length)});
  recorder->add_run_info("devsan", DEVSAN_VERSION);
  if (python_version[0] != '\0') recorder->add_run_info("python", python_version);
  add_torch_version(recorder, torch_home);
}

}  // namespace devsan

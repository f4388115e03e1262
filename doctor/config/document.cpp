#include "doctor/config/document.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <set>

namespace devsan::doctor {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxShown = 40;

// The text of a file, or why there is none. A pipe or a device is not waited for.
struct FileText {
  std::string text;
  std::string error;
};

FileText read_regular_file(const fs::path& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return {{}, std::string("cannot be read: ") + std::strerror(errno)};
  FileText file;
  struct stat info {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    file.error = "is no file";
  } else if (static_cast<std::uint64_t>(info.st_size) > kMaxConfigBytes) {
    file.error = "has more than 1 MiB, which no config has";
  } else {
    file.text.resize(kMaxConfigBytes + 1);
    const ssize_t size = read(fd, file.text.data(), file.text.size());
    file.text.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    if (size < 0) file.error = std::string("cannot be read: ") + std::strerror(errno);
  }
  close(fd);
  return file;
}

// Blanks out comments, and commas before a closing bracket, outside of strings. Offsets stay.
std::string without_relaxations(std::string text) {
  std::size_t comma = std::string::npos;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') {
      comma = std::string::npos;
      for (++i; i < text.size() && text[i] != '"'; ++i) i += text[i] == '\\' ? 1 : 0;
      continue;
    }
    const bool block = text.compare(i, 2, "/*") == 0;
    if (block || text[i] == '#' || text.compare(i, 2, "//") == 0) {
      const std::size_t found = block ? text.find("*/", i + 2) : text.find('\n', i);
      const std::size_t end = found == std::string::npos ? text.size() : found + (block ? 2 : 0);
      for (; i < end; ++i) text[i] = text[i] == '\n' ? '\n' : ' ';
      --i;
    } else if (text[i] == ',') {
      comma = i;
    } else if (text[i] == '}' || text[i] == ']') {
      if (comma != std::string::npos) text[comma] = ' ';
      comma = std::string::npos;
    } else if (std::strchr(" \t\r\n", text[i]) == nullptr) {
      comma = std::string::npos;
    }
  }
  return text;
}

// Takes note of keys that an object has twice; nlohmann's parser keeps the last one.
class DoubledKeys {
 public:
  bool operator()(int depth, Json::parse_event_t event, const Json& parsed) {
    if (depth > kMaxConfigDepth) {
      too_deep = true;
      return false;
    }
    if (event == Json::parse_event_t::key) ++count_;
    if (too_many()) return false;
    const auto level = static_cast<std::size_t>(depth);
    if (event == Json::parse_event_t::object_start) {
      keys_.resize(level + 1);
      keys_[level].clear();
      last_.resize(level + 1);
    } else if (event == Json::parse_event_t::key && level > 0 && level <= keys_.size()) {
      last_[level - 1] = parsed.get<std::string>();
      if (!keys_[level - 1].insert(last_[level - 1]).second) found.push_back(path(level));
    }
    return true;
  }

  bool too_many() const { return count_ > kMaxConfigKeys; }

  std::vector<std::string> found;
  bool too_deep = false;

 private:
  std::string path(std::size_t levels) const {
    std::string text;
    for (std::size_t i = 0; i < levels; ++i) text += (i == 0 ? "" : ".") + last_[i];
    return text;
  }

  std::size_t count_ = 0;
  std::vector<std::set<std::string>> keys_;
  std::vector<std::string> last_;
};

std::string place_of(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t start = before.rfind('\n');
  const std::size_t column = before.size() - (start == std::string_view::npos ? 0 : start + 1);
  return "line " + std::to_string(line) + ", column " + std::to_string(std::max<std::size_t>(column, 1));
}

// Parses what is JSON; else leaves `error`, which says where it is not.
Json parse_strictly(std::string_view text, DoubledKeys& keys, std::string& error) {
  try {
    return Json::parse(text.begin(), text.end(),
                       [&](int depth, Json::parse_event_t event, Json& parsed) { return keys(depth, event, parsed); });
  } catch (const Json::parse_error& failure) {
    error = "is not JSON at " + place_of(text, failure.byte);
  } catch (const Json::exception&) {
    error = "is not JSON";
  }
  return {};
}

}  // namespace

Document parse_json_config(std::string name, std::string_view text) {
  Document document;
  document.name = std::move(name);
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  DoubledKeys keys;
  document.value = parse_strictly(text, keys, document.error);
  if (!document.readable()) {
    std::string relaxed_error;
    keys = {};
    const std::string relaxed = without_relaxations(std::string(text));
    document.value = parse_strictly(relaxed, keys, relaxed_error);
    document.only_relaxed = relaxed_error.empty();
    document.error = relaxed_error;
  }
  document.doubled = keys.found;
  if (keys.too_many()) document.error = kTooManyKeys;
  if (keys.too_deep) document.error = "is nested too deeply for a config";
  if (document.readable() && !document.value.is_object()) document.error = "holds no object of keys and values";
  return document;
}

Document read_config(const fs::path& path) {
  const FileText file = read_regular_file(path);
  if (!file.error.empty()) {
    Document document;
    document.name = path.string();
    document.error = file.error;
    return document;
  }
  const bool yaml = path.extension() == ".yaml" || path.extension() == ".yml";
  return yaml ? parse_yaml_config(path.string(), file.text) : parse_json_config(path.string(), file.text);
}

const Json* find_value(const Json& object, std::string_view path) {
  const Json* value = &object;
  while (true) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    if (!value->is_object()) return nullptr;
    const auto found = value->find(std::string(path.substr(0, dot)));
    if (found == value->end()) return nullptr;
    value = &*found;
    if (dot == path.size()) return value;
    path.remove_prefix(dot + 1);
  }
}

std::string text_at(const Json& object, std::string_view path) {
  const Json* value = find_value(object, path);
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
}

std::string shown(const Json& value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() <= kMaxShown) return text;
  std::size_t end = kMaxShown - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

}  // namespace devsan::doctor

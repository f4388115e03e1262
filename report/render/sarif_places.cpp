#include "report/render/sarif_places.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <optional>

namespace devsan::report {
namespace {

bool is_path(std::string_view file) {
  return file.starts_with('/') || file.ends_with(".py");
}

std::string percent_encoded(std::string_view path) {
  constexpr std::string_view kHexDigits = "0123456789ABCDEF";
  constexpr std::string_view kKept = "-._~/!$&'()*+,;=@";
  std::string text;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || kKept.find(c) != std::string_view::npos) {
      text += c;
    } else {
      text += std::string("%") + kHexDigits[byte >> 4] + kHexDigits[byte & 0xf];
    }
  }
  return text;
}

// SARIF counts characters from 1, and devsan bytes from 0.
int character_at(std::string_view line, int byte) {
  const std::string_view before = line.substr(0, static_cast<std::size_t>(byte));
  return 1 + static_cast<int>(std::ranges::count_if(before, [](char c) { return (c & 0xC0) != 0x80; }));
}

Json region_of(const Frame& frame) {
  Json region = {{"startLine", frame.line}};
  const auto within = [&](int byte) { return byte >= 0 && static_cast<std::size_t>(byte) <= frame.source.size(); };
  if (frame.source.empty() || !within(frame.column)) return region;
  region["startColumn"] = character_at(frame.source, frame.column);
  if (frame.end_line > frame.line) {
    region["endLine"] = frame.end_line;
  } else if (within(frame.end_column) && frame.end_column > frame.column) {
    region["endColumn"] = character_at(frame.source, frame.end_column);
    const auto begin = static_cast<std::size_t>(frame.column);
    region["snippet"] = {{"text", frame.source.substr(begin, static_cast<std::size_t>(frame.end_column) - begin)}};
  }
  return region;
}

template <class Visit>
void visit_own_files(const Report& report, const Visit& visit) {
  const auto of_frames = [&](const std::vector<Frame>& frames) {
    for (const Frame& frame : frames) {
      if (frame.file.starts_with('/') && !frame.torch && !frame.library) visit(frame.file);
    }
  };
  for (const std::vector<Finding>* findings : {&report.findings, &report.suppressed}) {
    for (const Finding& finding : *findings) {
      of_frames(finding.stack);
      if (finding.forward) of_frames(*finding.forward);
    }
  }
}

// A change of consecutive lines.
struct Change {
  int line = 0;  // of the old text, the first one that is replaced or the one behind what is inserted
  std::vector<std::string_view> removed;
  std::string inserted;
  bool removes_end = false;  // the last removed line has no line break
};

Json replacement_of(const Change& change) {
  Json region = {{"startLine", change.line}, {"startColumn", 1}};
  const int last = change.line + static_cast<int>(change.removed.size());
  region["endLine"] = change.removes_end ? last - 1 : last;
  region["endColumn"] = 1;
  if (change.removes_end) {
    const std::string_view line = change.removed.back();
    region["endColumn"] = character_at(line, static_cast<int>(line.size()));
  }
  return {{"deletedRegion", std::move(region)}, {"insertedContent", {{"text", change.inserted}}}};
}

// The first line of the old text in "@@ -12,7 +12,8 @@". A hunk of none of them is named by the line before it.
int first_line_of_hunk(std::string_view header) {
  int line = 0;
  std::size_t at = header.find('-') + 1;
  for (; at < header.size() && std::isdigit(static_cast<unsigned char>(header[at])) != 0; ++at) {
    line = line * 10 + (header[at] - '0');
  }
  return header.substr(at).starts_with(",0 ") ? line + 1 : line;
}

}  // namespace

SarifPlaces::SarifPlaces(std::string base) : base_(std::move(base)) {
  if (!base_.empty() && base_.back() != '/') base_ += '/';
}

Json SarifPlaces::artifact(const std::string& file) const {
  if (!file.starts_with('/')) return {{"uri", percent_encoded(file)}};
  if (!base_.empty() && file.starts_with(base_)) {
    return {{"uri", percent_encoded(std::string_view(file).substr(base_.size()))}, {"uriBaseId", kSarifBase}};
  }
  return {{"uri", "file://" + percent_encoded(file)}};
}

Json SarifPlaces::location(const Frame& frame) const {
  Json location = Json::object();
  if (is_path(frame.file)) {
    location["physicalLocation"] = {{"artifactLocation", artifact(frame.file)}};
    if (frame.line > 0) location["physicalLocation"]["region"] = region_of(frame);
    if (frame.line > 0 && frame.column >= 0 && !frame.source.empty() && frame.end_line <= frame.line) {
      location["physicalLocation"]["contextRegion"] = {{"startLine", frame.line},
                                                       {"snippet", {{"text", frame.source}}}};
    }
  }
  std::string name = frame.function;
  if (!is_path(frame.file) && !frame.file.empty()) {
    name = frame.file + ":" + std::to_string(frame.line) + (name.empty() ? "" : " " + name);
  }
  if (!name.empty()) {
    location["logicalLocations"] = Json::array({{{"fullyQualifiedName", name}, {"kind", "function"}}});
  }
  return location;
}

Json SarifPlaces::location(const std::string& file, int line, const std::string& function) const {
  Frame frame;
  frame.file = file;
  frame.line = frame.end_line = line;
  frame.function = function;
  return location(frame);
}

Json SarifPlaces::bases() const {
  if (base_.empty()) return nullptr;
  return {{kSarifBase, {{"uri", "file://" + percent_encoded(base_)}}}};
}

std::string common_directory(const Report& report) {
  std::optional<std::string> common;
  visit_own_files(report, [&](const std::string& file) {
    const std::string directory = file.substr(0, file.rfind('/') + 1);
    if (!common) {
      common = directory;
      return;
    }
    const auto apart = std::ranges::mismatch(*common, directory).in1;
    common->erase(apart, common->end());
    common->erase(common->rfind('/') + 1);
  });
  return common && common->size() > 1 ? *common : "";
}

bool has_file_below(const Report& report, const std::string& directory) {
  bool found = false;
  visit_own_files(report, [&](const std::string& file) { found = found || file.starts_with(directory + "/"); });
  return found;
}

Json sarif_replacements(std::string_view diff) {
  Json replacements = Json::array();
  std::optional<Change> change;
  const auto finish = [&] {
    if (change) replacements.push_back(replacement_of(*change));
    change.reset();
  };
  int line = 0;  // of the old text, the next one
  char last_mark = ' ';
  bool in_hunk = false;
  while (!diff.empty()) {
    const std::size_t size = std::min(diff.find('\n'), diff.size());
    const std::string_view text = diff.substr(0, size);
    diff.remove_prefix(std::min(size + 1, diff.size()));
    const char mark = text.empty() ? ' ' : text.front();
    if (text.starts_with("@@ -")) {
      finish();
      line = first_line_of_hunk(text);
      in_hunk = true;
    } else if (in_hunk && mark == '\\') {
      if (change && last_mark == '-') change->removes_end = true;
      if (change && last_mark == '+' && !change->inserted.empty()) change->inserted.pop_back();
    } else if (in_hunk && mark == ' ') {
      finish();
      ++line;
    } else if (in_hunk) {
      if (!change) change = Change{line, {}, "", false};
      if (mark == '-') {
        change->removed.push_back(text.substr(1));
        ++line;
      } else {
        change->inserted += std::string(text.substr(1)) + "\n";
      }
    }
    last_mark = mark;
  }
  finish();
  return replacements;
}

}  // namespace devsan::report

#include "report/findings/suppress.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

namespace devsan::report {
namespace {

namespace fs = std::filesystem;

// One byte more than an entry may take tells that the file is too large.
std::string beginning_of(std::istream& in) {
  std::string text(trace::kMaxSuppressionBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

}  // namespace

SuppressionFile read_suppression_file(const fs::path& path) {
  SuppressionFile file;
  std::error_code error;
  const fs::path whole = fs::absolute(path, error);
  const std::string name = (error ? path : whole).lexically_normal().string();
  if (fs::is_directory(path, error)) {
    file.complaints.push_back(name + ": this is a directory, not a file of suppressions");
    return file;
  }
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  const std::string text = in ? beginning_of(in) : std::string();
  if (!in.is_open() || in.bad()) {
    file.complaints.push_back(name + ": " + (errno != 0 ? std::strerror(errno) : "this file cannot be read"));
    return file;
  }
  trace::ParsedSuppressions parsed = trace::parse_suppressions(text);
  for (trace::Suppression& entry : parsed.entries) {
    file.entries.push_back({name, entry.line, std::move(entry.text), std::move(entry.reason), 0});
  }
  for (const trace::SuppressionComplaint& complaint : parsed.complaints) {
    const std::string place = complaint.line > 0 ? ":" + std::to_string(complaint.line) + ": " : " ";
    file.complaints.push_back(name + place + complaint.sentence);
  }
  return file;
}

void Suppressor::use_instead(const std::vector<SuppressionUse>& entries) {
  instead_ = true;
  for (const SuppressionUse& entry : entries) add(entry);
}

void Suppressor::begin_trace(const trace::TraceFile& trace) {
  if (instead_) return;
  current_.clear();
  for (const trace::SuppressionLine& line : trace.suppressions()) {
    add({line.file, line.line, line.text, line.reason, 0});
  }
}

// What a damaged trace has left of an entry may be none any more, and then silences nothing.
void Suppressor::add(const SuppressionUse& use) {
  auto [found, is_new] = entries_.try_emplace(Key(use.file, use.line, use.text));
  if (is_new) {
    found->second.use = use;
    const trace::ParsedSuppressions parsed = trace::parse_suppressions(use.text);
    if (parsed.entries.size() == 1) found->second.rule = parsed.entries.front();
  }
  current_.push_back(&found->second);
}

void Suppressor::begin_run() {
  if (instead_) return;
  current_.clear();
  for (auto& [key, entry] : entries_) current_.push_back(&entry);
}

void Suppressor::judge(Finding& finding) {
  if (finding.silence) return;
  trace::FindingPlace place{finding.kind, finding.op, {}, {}};
  if (finding.where) {
    place.file = finding.where->file;
    place.function = finding.where->function;
  }
  const auto match = std::ranges::find_if(current_, [&](const Entry* entry) { return entry->rule.matches(place); });
  if (match == current_.end()) return;
  SuppressionUse& use = (*match)->use;
  use.count += finding.count;
  finding.silence = Silence{Silence::By::suppression, use.file, use.line, use.text, use.reason};
}

std::vector<SuppressionUse> Suppressor::take() {
  std::vector<SuppressionUse> uses;
  for (auto& [key, entry] : entries_) uses.push_back(std::move(entry.use));
  entries_.clear();
  current_.clear();
  return uses;
}

}  // namespace devsan::report

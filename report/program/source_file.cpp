#include "report/program/source_file.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "report/program/definitions.h"
#include "report/program/flow.h"
#include "report/program/scopes.h"

namespace devsan::program {

struct SourceFile::Analyses {
  explicit Analyses(const SourceFile& file)
      : scopes(file), definitions(file, scopes), flow(file, scopes, definitions) {}
  Scopes scopes;
  Definitions definitions;  // they complete the scopes
  Flow flow;
};

SourceFile::SourceFile(std::string path, std::string text) : path_(std::move(path)), text_(std::move(text)) {
  index_lines();
  parse();
}

SourceFile::~SourceFile() = default;

// As CPython breaks lines: at "\n", "\r\n" and "\r". The mark at the start of a file belongs to no column.
void SourceFile::index_lines() {
  line_starts_.push_back(text_.starts_with("\xef\xbb\xbf") ? 3 : 0);
  for (std::size_t at = line_starts_.front(); at < text_.size(); ++at) {
    if (text_[at] != '\n' && text_[at] != '\r') continue;
    if (text_[at] == '\r' && at + 1 < text_.size() && text_[at + 1] == '\n') ++at;
    line_starts_.push_back(static_cast<std::uint32_t>(at + 1));
  }
}

int SourceFile::line_of(std::uint32_t byte) const {
  const auto after = std::upper_bound(line_starts_.begin(), line_starts_.end(), byte);
  return std::max(1, static_cast<int>(after - line_starts_.begin()));
}

std::uint32_t SourceFile::line_start(int line) const {
  if (line < 1) return line_starts_.front();
  if (line > line_count()) return static_cast<std::uint32_t>(text_.size());
  return line_starts_[static_cast<std::size_t>(line) - 1];
}

std::string_view SourceFile::line_text(int line) const {
  if (line < 1 || line > line_count()) return {};
  std::string_view found = text().substr(line_start(line), line_start(line + 1) - line_start(line));
  while (!found.empty() && (found.back() == '\n' || found.back() == '\r')) found.remove_suffix(1);
  return found;
}

std::uint32_t SourceFile::byte_of(int line, int column) const {
  const std::uint32_t start = line_start(line);
  return std::min(start + static_cast<std::uint32_t>(std::max(column, 0)), static_cast<std::uint32_t>(text_.size()));
}

SourceFile::Analyses& SourceFile::analyses() const {
  if (!analyses_) analyses_ = std::make_unique<Analyses>(*this);
  return *analyses_;
}

const Scopes& SourceFile::scopes() const {
  return analyses().scopes;
}

const Definitions& SourceFile::definitions() const {
  return analyses().definitions;
}

const Flow& SourceFile::flow() const {
  return analyses().flow;
}

}  // namespace devsan::program

#include "hooks/inprocess/events/loader_site.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/source/file_lines.h"
#include "hooks/inprocess/source/python_calls.h"
#include "hooks/inprocess/source/python_text.h"

namespace devsan::hooks {

namespace {

constexpr std::string_view kLoader = "DataLoader";
constexpr std::string_view kPin = "pin_memory=";
constexpr int kMaxSteps = 6;

// The program's line to which a loader gave what an operand was made of; none where none did.
std::optional<trace::Position> given_by_loader(const trace::OperandRecord& operand) {
  trace::LineageNode node = runtime.recorder->lineage(operand.lineage);
  for (int steps = 0; steps < kMaxSteps; ++steps) {
    const trace::Site site = runtime.recorder->site(node.site);
    const std::string_view innermost = runtime.recorder->string(site.innermost.file);
    if (innermost.find("/torch/utils/data/") != innermost.npos) return site.user;
    if (node.how != trace::How::derived) break;
    node = runtime.recorder->lineage(node.parent);
  }
  return std::nullopt;
}

// A line of a file that makes a loader, with the whole statement.
struct Making {
  trace::StringId file;
  int line;
  std::string statement;
};

void add_makings(std::vector<Making>& makings, trace::StringId file, const SourceLines& lines) {
  for (int k = 1; k <= lines.count(); ++k) {
    const std::string_view text = trimmed(lines[k]);
    if (call_in(text, kLoader) == text.npos || text.starts_with("class ") || text.starts_with('#')) continue;
    makings.push_back({file, k, statement_at(lines, k)});
  }
}

// "train_loader" of `for x, y in train_loader:`; empty for any other statement.
std::string looped_over(std::string_view statement) {
  const std::size_t in = statement.find(" in ");
  if (!statement.starts_with("for ") || in == statement.npos) return "";
  const std::string_view rest = trimmed(statement.substr(in + 4));
  const std::string_view name = rest.substr(0, rest.find_first_of(":("));
  return std::string(name);
}

// Of several, the one that stores what the loop goes through.
const Making* only_making(const std::vector<Making>& makings, const std::string& name) {
  if (makings.size() == 1) return &makings.front();
  const Making* found = nullptr;
  for (const Making& one : makings) {
    if (name.empty() || !assigned_to(one.statement, name)) continue;
    if (found != nullptr) return nullptr;
    found = &one;
  }
  return found;
}

// Where the variable or the argument gets its value that `pin_memory=pin` gives; the line itself where it gives none.
int decided_at(const SourceLines& lines, const Making& making) {
  const std::size_t at = making.statement.find(kPin);
  if (at == std::string::npos) return making.line;
  const std::size_t begin = at + kPin.size();
  const std::string name = making.statement.substr(begin, end_of_expression(making.statement, begin) - begin);
  const int definition = enclosing_line(lines, making.line, "def ");
  if (!is_identifier(name)) return making.line;
  const auto assigned = assignments_of(lines, name, definition + 1, making.line);
  if (!assigned.empty()) return assigned.back();
  const auto parameter = definition != 0 ? parameter_of(statement_at(lines, definition), name) : std::nullopt;
  return parameter && !parameter->standard.empty() ? definition : making.line;
}

// The lines that make loaders, in the file where one gave something and in others.
std::vector<Making> all_makings(const trace::Position& given, const std::vector<trace::StringId>& others,
                                FileLines& files) {
  std::vector<trace::StringId> looked_at;
  std::vector<Making> makings;
  const auto look_at = [&](trace::StringId file) {
    if (file == trace::StringId::none || std::ranges::find(looked_at, file) != looked_at.end()) return;
    looked_at.push_back(file);
    add_makings(makings, file, files.of(file));
  };
  look_at(given.file);
  std::ranges::for_each(others, look_at);
  return makings;
}

trace::SiteId find_site(const trace::Position& given, std::span<const trace::FrameRecord> frames) {
  std::vector<trace::StringId> others;
  for (const trace::FrameRecord& frame : frames) {
    if ((frame.flags & (trace::kTorchFrame | trace::kLibraryFrame)) == 0) others.push_back(frame.position.file);
  }
  FileLines files;
  std::vector<Making> makings = all_makings(given, others, files);
  std::erase_if(makings,
                [](const Making& one) { return one.statement.find(std::string(kPin) + "True") != std::string::npos; });
  const Making* making = only_making(makings, looped_over(statement_at(files.of(given.file), given.line)));
  if (making == nullptr) return trace::SiteId::none;
  const SourceLines& lines = files.of(making->file);
  const int line = decided_at(lines, *making);
  const trace::Position at = position_of_line(making->file, lines, line);
  return runtime.recorder->add_site({at, at});
}

}  // namespace

trace::SiteId loader_site(std::span<const trace::OperandRecord> operands,
                          std::span<const trace::FrameRecord> frames) noexcept {
  try {
    for (const trace::OperandRecord& operand : operands) {
      if (const auto given = given_by_loader(operand)) return find_site(*given, frames);
    }
  } catch (const std::exception&) {  // a cause is worth no failure
  }
  return trace::SiteId::none;
}

}  // namespace devsan::hooks

// A tensor on the host that an object keeps values in which it brings over for that: a cache, a memory bank. Read from
// the source alone.
#include <string>
#include <string_view>

#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/history_source.h"
#include "hooks/inprocess/source/python_puts.h"
#include "hooks/inprocess/source/python_text.h"

namespace devsan::hooks {

namespace {

// "self.bank" of `self.bank = torch.zeros(n, d)`; empty for any other statement.
std::string attribute_stored(std::string_view statement) {
  constexpr std::string_view kSelf = "self.";
  const std::size_t begin = statement.find_first_not_of(' ');
  if (begin == statement.npos || !statement.substr(begin).starts_with(kSelf)) return "";
  const std::string_view text = statement.substr(begin);
  std::size_t end = kSelf.size();
  while (end < text.size() && is_identifier(text.substr(kSelf.size(), end + 1 - kSelf.size()))) ++end;
  return text.substr(end).starts_with(" = ") ? std::string(text.substr(0, end)) : std::string();
}

bool brings_to_host(std::string_view value) {
  for (const std::string_view call : {".cpu()", ".to(\"cpu\"", ".to('cpu'"}) {
    if (value.find(call) != value.npos) return true;
  }
  return false;
}

// The only line of a class that puts what it brings to the host into an entry of the attribute.
int line_that_fills(const SourceLines& lines, int definition, const std::string& attribute) {
  const int type = enclosing_line(lines, definition, "class ");
  int found = 0;
  for (int k = type + 1; type != 0 && k <= lines.count(); ++k) {
    if (is_blank(lines[k])) continue;
    if (indentation(lines[k]) <= indentation(lines[type])) break;
    if (lines[k].find(attribute) == std::string_view::npos) continue;
    for (const ContainerPut& put : puts_in(statement_at(lines, k))) {
      if (put.key.empty() || put.container != attribute) continue;
      if ((found != 0 && found != k) || !brings_to_host(put.value)) return 0;
      found = k;
    }
  }
  return found;
}

}  // namespace

void find_filling(const trace::OperandRecord& operand, std::size_t index, EvidenceList& found) {
  visit_history(operand, [&](const trace::LineageNode& node, const trace::Position& made, const SourceLines& lines) {
    if (node.how != trace::How::created) return true;
    const std::string attribute = attribute_stored(statement_at(lines, made.line));
    const int line = attribute.empty() ? 0 : line_that_fills(lines, made.line, attribute);
    if (line != 0) {
      found.add(trace::EvidenceKind::filled_from_host_at, index,
                position_at(made.file, line, qualified_function(lines, line)), attribute);
    }
    return false;
  });
}

}  // namespace devsan::hooks

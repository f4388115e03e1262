#include "hooks/evidence/loop_site.h"

#include <algorithm>
#include <array>
#include <exception>
#include <string>
#include <string_view>

#include "hooks/evidence/evidence.h"
#include "hooks/process/runtime.h"
#include "hooks/source/file_lines.h"
#include "hooks/source/python_text.h"
#include "trace/words.h"

namespace devsan::hooks {

namespace {

// Whether an expression uses a variable as it is: `x[:, n]` and `f(n)`, not `n.item()` or `n[0]`.
bool uses_as_it_is(std::string_view expression, std::string_view name) {
  for (std::size_t at = name_in(expression, name); at != expression.npos; at = name_in(expression, name, at + 1)) {
    const std::string_view behind = trimmed(expression.substr(at + name.size()));
    const bool asked = !behind.empty() && std::string_view(".[(").find(behind.front()) != std::string_view::npos;
    if (!asked && (at == 0 || expression[at - 1] != '.')) return true;
  }
  return false;
}

bool uses_any(std::string_view expression, std::string_view targets) {
  for (std::size_t begin = 0; begin < targets.size();) {
    std::size_t end = begin;
    while (end < targets.size() && trace::is_word(targets[end])) ++end;
    if (end > begin && uses_as_it_is(expression, targets.substr(begin, end - begin))) return true;
    begin = end + 1;
  }
  return false;
}

bool goes_through_numbers(std::string_view head) {
  constexpr std::array<std::string_view, 4> kToHost = {"tolist", "cpu", "numpy", "items"};
  return head.find(" in range(") != head.npos || trace::calls_method(head, kToHost);
}

}  // namespace

trace::SiteId loop_site(trace::SiteId site) noexcept {
  try {
    const trace::Position at = runtime.recorder->site(site).user;
    const auto loop = loop_around(at);
    if (!loop) return trace::SiteId::none;
    FileLines files;
    const SourceLines& lines = files.of(at.file);
    const std::string head = statement_at(lines, loop->line);
    if (goes_through_numbers(head) || !uses_any(code_text(lines, at), loop_targets(head))) return trace::SiteId::none;
    return runtime.recorder->add_site({*loop, *loop});
  } catch (const std::exception&) {  // a cause is worth no failure
    return trace::SiteId::none;
  }
}

}  // namespace devsan::hooks

// The lines that put something into a container which an attribute keeps, or into one of its entries, by whatever name:
// `self.state[p] = {…}` in one method, and `for s, old in zip(self.state, saved): s[key] = value` in another.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/provenance/sites.h"
#include "hooks/inprocess/source/file_lines.h"
#include "hooks/inprocess/source/python_names.h"
#include "hooks/inprocess/source/python_puts.h"
#include "hooks/inprocess/source/python_text.h"
#include "trace/words.h"

namespace devsan::hooks {

namespace {

// Whether a text has the attribute, of whatever object: "state" of `zip(self.state, saved)`.
bool has_attribute(std::string_view text, std::string_view attribute) {
  for (std::size_t at = trace::name_in(text, attribute); at != text.npos;
       at = trace::name_in(text, attribute, at + 1)) {
    if (at > 0 && text[at - 1] == '.') return true;
  }
  return false;
}

class Fills {
 public:
  Fills(std::string attribute, std::string_view key) : attribute_(std::move(attribute)), key_(key) {}

  void look_at(const void* code) {
    const trace::Position begin = position_of(code, 0);
    const SourceLines& lines = files_.of(begin.file);
    const int definition = is_module_body(code) ? 0 : definition_below(lines, code_first_line(code));
    if (definition == 0 && !is_module_body(code)) return;
    const int end = definition != 0 ? end_of_function(lines, definition + 1) : lines.count();
    for (int k = definition + 1; k <= end; ++k) {
      if (is_blank(lines[k]) || enclosing_line(lines, k, "def ") != definition) continue;
      if (fills(lines, k, definition)) {
        found.push_back({position_at(begin.file, k, qualified_function(lines, k)), true});
      }
      k = end_of_statement(lines, k);
    }
  }

  std::vector<Candidate> found;

 private:
  bool fills(const SourceLines& lines, int line, int definition) const {
    for (const ContainerPut& put : puts_in(statement_at(lines, line))) {
      const std::string_view key = text_of_key(put.key);
      const std::string_view root = without_subscripts(put.container);
      if (!key_.empty() && !key.empty() && key != key_) continue;
      if (is_identifier(root) ? stands_for(lines, line, definition, root) : root.ends_with("." + attribute_))
        return true;
    }
    return false;
  }

  // Whether a variable has its value from what the attribute keeps.
  bool stands_for(const SourceLines& lines, int line, int definition, std::string_view variable) const {
    for (int loop = line; (loop = enclosing_line(lines, loop, "for ")) > definition;) {
      const std::string head = statement_at(lines, loop);
      if (has_word(loop_targets(head), variable)) return has_attribute(assigned_text(head), attribute_);
    }
    const std::vector<int> assigned = assignments_of(lines, variable, definition + 1, line);
    if (assigned.size() != 1) return false;
    const std::string statement = statement_at(lines, assigned.front());
    return has_attribute(assigned_text(statement), attribute_);
  }

  const std::string attribute_;
  const std::string_view key_;
  FileLines files_;
};

}  // namespace

std::vector<Candidate> container_fills(const Inquiry& inquiry, const void* attribute, std::string_view key) {
  Fills fills(text_of(attribute), key);
  for (const void* code : inquiry.own_code.code()) {
    if (mentions(code, attribute)) fills.look_at(code);
  }
  return fills.found;
}

}  // namespace devsan::hooks

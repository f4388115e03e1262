#include "hooks/inprocess/source/python_scopes.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "hooks/inprocess/source/python_statements.h"
#include "trace/words.h"

namespace devsan::hooks {

namespace {

using trace::is_word;

constexpr int kMaxScopes = 32;

// What a statement defines; no name where it defines nothing.
struct Definition {
  std::string_view name;
  bool function = false;
};

std::string_view without(std::string_view text, std::string_view word) noexcept {
  if (!text.starts_with(word)) return {};
  text.remove_prefix(word.size());
  const std::size_t begin = text.find_first_not_of(" \t");
  return begin == 0 || begin == text.npos ? std::string_view() : text.substr(begin);
}

Definition defined_by(std::string_view statement) noexcept {
  const std::string_view waits = without(statement, "async");
  if (!waits.empty()) statement = waits;
  const std::string_view function = without(statement, "def");
  const std::string_view rest = function.empty() ? without(statement, "class") : function;
  const auto end = std::find_if_not(rest.begin(), rest.end(), is_word);
  return {rest.substr(0, static_cast<std::size_t>(end - rest.begin())), !function.empty()};
}

// The functions and classes that a line stands in.
class Scopes {
 public:
  void leave(std::size_t indent) noexcept {
    while (count_ > 0 && scopes_[count_ - 1].indent >= indent) --count_;
  }

  bool enter(const Definition& definition, std::size_t indent) noexcept {
    if (count_ == scopes_.size()) return false;
    const bool of_module = may_be_global(definition.name);
    scopes_[count_++] = {definition, indent, {}, of_module};
    return true;
  }

  // The names of a `global` statement are of the module, and so is what is defined by them.
  void declare_global(std::string_view statement) noexcept {
    if (count_ == 0) return;
    std::string_view& declared = scopes_[count_ - 1].declared;
    const char* begin = declared.empty() ? statement.data() : declared.data();
    declared = {begin, static_cast<std::size_t>(statement.data() + statement.size() - begin)};
  }

  std::string_view qualify(std::string_view name, std::span<char> buffer) const noexcept {
    if (may_be_global(name)) return {};
    std::size_t size = 0;
    const auto append = [&](std::string_view part) {
      if (size + part.size() > buffer.size()) return false;
      size += part.copy(buffer.data() + size, part.size());
      return true;
    };
    for (std::size_t k = 0; k < count_; ++k) {
      const Definition& around = scopes_[k].definition;
      if (scopes_[k].of_module || !append(around.name) || !append(around.function ? ".<locals>." : ".")) return {};
    }
    return append(name) ? std::string_view(buffer.data(), size) : std::string_view();
  }

 private:
  struct Scope {
    Definition definition;
    std::size_t indent = 0;
    std::string_view declared;  // from the first `global` statement up to the last
    bool of_module = false;     // it may have a name of the module
  };
  bool may_be_global(std::string_view name) const noexcept {
    return count_ > 0 && scopes_[count_ - 1].declared.find(name) != std::string_view::npos;
  }
  std::array<Scope, kMaxScopes> scopes_;
  std::size_t count_ = 0;
};

// Whether each lambda or comprehension of this name in the statement stands in the function around the statement.
bool is_outermost(std::string_view name, const Statement& line, const Definition& defined) noexcept {
  if (line.opaque || (!defined.name.empty() && line.one_line)) return false;
  if (name == "<lambda>") return line.lambdas == 1 && line.comprehensions == 0;
  return line.lambdas == 0 && line.comprehensions > 0 && !line.nested;
}

}  // namespace

std::string_view qualified_name_in(std::string_view text, int line, std::string_view name,
                                   std::span<char> buffer) noexcept {
  if (name.empty() || name == "<module>") return name;
  const bool expression = name.starts_with('<');
  StatementReader reader(text);
  Scopes scopes;
  Statement read;
  for (bool decorated = false; reader.next(read);) {
    scopes.leave(read.indent);
    const Definition defined = defined_by(read.text);
    if (expression && line <= read.last) {
      const bool told = line >= read.first && is_outermost(name, read, defined);
      return told ? scopes.qualify(name, buffer) : std::string_view();
    }
    if (!expression && read.first >= line) {
      if (read.first > line && !decorated) return {};
      decorated = read.text.starts_with('@');
      if (!decorated) return defined.name == name ? scopes.qualify(name, buffer) : std::string_view();
    }
    if (!defined.name.empty() && !scopes.enter(defined, read.indent)) return {};
    if (!without(read.text, "global").empty()) scopes.declare_global(read.text);
  }
  return {};
}

}  // namespace devsan::hooks

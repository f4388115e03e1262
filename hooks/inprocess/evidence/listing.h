// Where the things are written out that a loop goes through: `(a, b)` in its own head, or what its head names, followed
// to the variable, attribute, method or call that gives it. Read from the source alone; needs no interpreter. What
// cannot be told for sure is not told. May throw std::bad_alloc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hooks/inprocess/source/python_text.h"
#include "hooks/inprocess/source/source_files.h"
#include "trace/file_layout.h"

namespace devsan::hooks {

class Listing {
 public:
  // `begin` is a line inside of a loop or a comprehension, to which `calls` (trace::LineageNode) led.
  Listing(const trace::Position& begin, std::uint32_t calls);

  struct Found {
    trace::Position at;
    std::string text;  // "(a, b)"; of a call all that it gives
  };
  std::optional<Found> find();

 private:
  std::optional<Found> gone_through(int line);
  std::optional<Found> resolve(std::string expression);
  std::optional<Found> stored_in_function(const std::string& name);
  std::optional<Found> given_by_caller(const std::string& name);
  enum class Scope { module, types, everywhere };
  bool is_in(Scope scope, int line);
  std::optional<Found> stored_anywhere(const std::string& target, Scope scope);
  std::optional<Found> returned_by(const std::string& function);
  Found here(int line, std::string text);
  const SourceLines& lines();

  SourceFiles files_;
  std::optional<SourceLines> lines_;
  trace::StringId lines_of_ = trace::StringId::none;
  std::vector<trace::Position> frames_;  // of the history, the innermost first
  std::size_t frame_ = 0;
  int line_;
  int steps_ = 0;
};

}  // namespace devsan::hooks

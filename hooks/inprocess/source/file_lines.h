// The lines of the file that was asked for last, since positions of one file follow each other; and positions of whole
// lines. May throw std::bad_alloc.
#pragma once

#include <optional>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/source/python_text.h"
#include "hooks/inprocess/source/source_files.h"
#include "trace/file_layout.h"

namespace devsan::hooks {

class FileLines {
 public:
  // Lives until another file is asked for.
  const SourceLines& of(trace::StringId file) {
    if (!lines_ || file != file_) lines_.emplace(files_.whole(file));
    file_ = file;
    return *lines_;
  }

 private:
  SourceFiles files_;
  std::optional<SourceLines> lines_;
  trace::StringId file_ = trace::StringId::none;
};

// A line of a file, without columns, as part of the function that its text says.
inline trace::Position position_of_line(trace::StringId file, const SourceLines& lines, int line) {
  trace::Position position{};
  position.file = file;
  position.function = runtime.recorder->intern_string(qualified_function(lines, line));
  position.line = position.end_line = line;
  position.column = position.end_column = -1;
  return position;
}

}  // namespace devsan::hooks

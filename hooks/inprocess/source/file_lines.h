// The lines of the file that was asked for last, since positions of one file follow each other. May throw
// std::bad_alloc.
#pragma once

#include <optional>

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

}  // namespace devsan::hooks

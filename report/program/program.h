// The source files of a program that are at hand.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "report/program/source_file.h"

namespace devsan::program {

class Program {
 public:
  // A path that is known keeps its text.
  const SourceFile& add(std::string path, std::string text);
  const SourceFile* file(std::string_view path) const;
  std::vector<const SourceFile*> files() const;
  // That an import in `from` names: "pkg.utils" or ".utils", of the files that were added. A package is its
  // __init__.py. Absolute names are looked for by the end of the path, the nearest to `from` first. Null where there is
  // none.
  const SourceFile* module(std::string_view dotted, const SourceFile& from) const;

 private:
  std::map<std::string, std::unique_ptr<SourceFile>, std::less<>> files_;
};

}  // namespace devsan::program

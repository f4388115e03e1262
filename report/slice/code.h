// The files that take part in one failure, asked together, and what the run says about who called whom in them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "report/model/facts.h"
#include "report/model/finding.h"
#include "report/program/program.h"
#include "report/slice/file_index.h"

namespace devsan::report::slice {

// The files of a run, parsed and indexed when they are first asked for. Used by one thread at a time.
class Codebase {
 public:
  // `sources` outlives this.
  explicit Codebase(const Sources& sources) : sources_(sources) {}
  // Null where the run kept no text of the file, unless it kept its hash, and the file is still the same.
  const FileIndex* file(const std::string& path);

 private:
  const Sources& sources_;
  program::Program program_;
  std::map<std::string, std::unique_ptr<FileIndex>> files_;
};

// Which files are taken: installed ones are thousands of lines that the user will not change.
enum class Files : std::uint8_t { program, with_libraries };

class Code {
 public:
  // Those files that frames and histories of the finding lie in.
  Code(Codebase& codebase, const Finding& finding, Files files = Files::program);

  bool empty() const { return files_.empty(); }
  const std::vector<const FileIndex*>& files() const { return files_; }
  // Null for a file that does not take part.
  const FileIndex* file(std::string_view path) const;

  Nodes calls(std::string_view name) const { return gather(&FileIndex::calls, name); }
  Nodes functions(std::string_view name) const { return gather(&FileIndex::functions, name); }
  Nodes classes(std::string_view name) const { return gather(&FileIndex::classes, name); }
  Nodes mentions(std::string_view name) const { return gather(&FileIndex::mentions, name); }
  Nodes fills(std::string_view name) const { return gather(&FileIndex::fills, name); }
  Definitions stores(std::string_view name) const { return gather(&FileIndex::stores, name); }
  Definitions entries(std::string_view name) const { return gather(&FileIndex::entries, name); }
  bool defines(std::string_view name) const;  // a function or class of that name

  // The expression at a frame, or its statement; the function that runs there. None where there is no text.
  program::Node node_at(const Frame& frame) const;
  program::Node function_at(const Frame& frame) const;
  // Calls of the function that were running, by the stack and the histories.
  const Nodes& calls_that_ran(program::Node function) const;
  bool is_library(const program::SourceFile& file) const { return libraries_.contains(file.path()); }
  // Whether some assignment makes what the expression names an object of the class.
  bool may_be_object_of(program::Node expression, program::Node class_definition) const;
  // The class of the object that an expression is, as far as the code says it in one way; none where it does not.
  program::Node class_of_object(program::Node expression) const;
  // The class, those that it is derived from, and those that are derived from it.
  const Nodes& family_of(program::Node class_definition) const;
  Nodes subclasses_of(std::string_view name) const;
  // Functions and classes that a name means where it is called: by its definition or import, else by name alone.
  Nodes called_by_name(program::Node identifier) const;

 private:
  template <class Value>
  std::vector<Value> gather(const std::vector<Value>& (FileIndex::*table)(std::string_view) const,
                            std::string_view name) const {
    std::vector<Value> found;
    for (const FileIndex* file : files_) {
      const std::vector<Value>& some = (file->*table)(name);
      found.insert(found.end(), some.begin(), some.end());
    }
    return found;
  }
  void add_calls(const std::vector<Frame>& frames);  // innermost first
  program::Node call_at(const Frame& frame, program::Node function) const;

  program::Node class_made_by(program::Node value) const;
  program::Node find_class_of(program::Node expression) const;

  std::vector<const FileIndex*> files_;
  std::set<std::string, std::less<>> libraries_;
  std::map<program::Node, Nodes> ran_;
  mutable std::map<program::Node, program::Node> class_of_object_;
  mutable std::map<program::Node, Nodes> families_;
};

// Whether the node is in the body of one of the classes.
bool is_in(program::Node node, const Nodes& classes);

// Whether the class names `base` among those that it is derived from.
bool is_derived_from(program::Node class_definition, std::string_view base);
std::string_view name_of_class(program::Node class_definition);

}  // namespace devsan::report::slice

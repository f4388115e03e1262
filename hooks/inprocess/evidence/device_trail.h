// Follows the expression that a device is named by through the program's source: an attribute to the line that stores
// it, a parameter to the call that gives it. The calls are those that were made, as far as the history has them; of
// other functions, such as the constructor that stored an attribute, the only call in the file, or the only one of
// several that can have given the device which it came to. Needs no interpreter. May throw std::bad_alloc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hooks/inprocess/source/python_calls.h"
#include "hooks/inprocess/source/python_results.h"
#include "hooks/inprocess/source/python_text.h"
#include "hooks/inprocess/source/source_files.h"
#include "trace/file_layout.h"

namespace devsan::hooks {

// Whether a value decides a place by itself: a literal, a function that is named for it, the weights of a model.
bool decides_place(std::string_view value);

// `"cpu"` and `torch.device("cpu")`, of the CPU.
bool says_place(std::string_view value, std::string_view device);

class DeviceTrail {
 public:
  // A device is named in the line of `begin`, to which `calls` (trace::LineageNode) led; it was `device`, "cuda:0".
  DeviceTrail(const trace::Position& begin, std::uint32_t calls, std::string_view device);

  struct Stop {
    trace::Position at;
    // What gets its device here; `name='cpu'` where a default gives it, and `plan[...]` for an entry by whatever key.
    std::string text;
    trace::StringId default_file = trace::StringId::none;
    int default_line = 0;  // then: the definition of the function whose default it is
    // "self.pipe" of `device = self.pipe.device`: decides as a property does, unless it is a tensor or keeps a device.
    std::string object{};
  };
  // Where `expression` comes from, and where that does, and so on; empty where that is not known.
  std::vector<Stop> follow(std::string expression);
  // The same of what a call computes, as "place_of(net)": where the function chooses it.
  std::vector<Stop> follow_call(const std::string& call);
  // The same of an entry of a table, as "self.plan", by whatever key.
  std::vector<Stop> follow_table(const std::string& table);

 private:
  struct Function {
    int definition;    // its line
    std::string name;  // by which it is called: that of its class for a constructor
    bool bound;
  };

  const SourceLines& lines(trace::StringId file);
  std::optional<Function> function_here();
  std::optional<std::string> stored_attribute(const std::string& expression);
  struct Stored {
    std::string value;
    int line;  // the last of several that store the same
  };
  void keep_the_last_here(std::vector<Stored>& found);
  struct Standing {
    trace::StringId file;
    int line;
    std::optional<std::size_t> frame;
  };
  Standing standing() const { return {file_, line_, frame_}; }
  void return_to(const Standing& place);
  std::optional<std::string> of_variable(const std::string& name, Stop& stop);
  bool leave_function(const std::string& name);
  struct TakenHere {
    int line;
    TakenOut from;
  };
  std::optional<TakenHere> taking_here(const std::string& name);
  std::optional<std::string> taken_out(const std::string& name, Stop& stop);
  std::optional<std::string> go_to_return(std::string_view called, std::optional<std::size_t> element);
  std::optional<std::string> result_of(std::string_view called, std::optional<std::size_t> element, Stop& stop);
  std::optional<std::string> entry_in(const std::string& container, int depth, Stop& stop);
  void go_to_entry();
  std::optional<std::string> entry_given(const std::string& container, int depth, Stop& stop);
  std::optional<Stored> stored_variable(const std::string& name);
  std::optional<std::string> chosen_here(const std::string& name, Stop& stop);
  std::optional<Stored> made_above(const std::string& name, int depth);
  int cached_property(int type, const std::string& name);
  std::optional<Stored> stored_globally(const std::string& name);
  std::optional<std::string> display_of(const std::string& name);
  std::string unpacked(const std::string& expression, std::vector<Stop>& stops);
  std::string entry_of(const EntryReference& entry, std::vector<Stop>& stops);
  std::optional<std::string> given_argument(Stop& stop);
  Given given_by_caller(const Function& function, const Parameter& parameter);
  Given given_by_only_call(const Function& function, const Parameter& parameter);
  std::vector<int> calls_of(const std::string& name);
  Given given_in(int line, const Function& function, const Parameter& parameter);
  std::string call_source(const trace::Position& at, const std::string& name);
  trace::Position position_here();
  bool runs_function_of(const trace::Position& frame, int line);
  bool same_object_around(std::size_t k);
  void go_to_store(int line);
  void go_to_call(int line);

  static constexpr int kMaxResults = 4;  // functions and containers, one after the other

  SourceFiles files_;
  std::optional<SourceLines> lines_;
  trace::StringId lines_of_ = trace::StringId::none;
  std::vector<trace::Position> frames_;  // of the history, the innermost first
  std::optional<std::size_t> frame_;     // in which `file_` and `line_` are
  trace::StringId file_;
  int line_;
  std::string_view device_;
  int results_ = 0;  // of functions, that were followed
};

}  // namespace devsan::hooks

// A device that comes out of a function's result, or out of a container that a loop goes through: `device, n =
// self.check(x)`, `for name, where in plan.items()`. No variable of the function that uses it says more.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "hooks/inprocess/evidence/device_trail.h"
#include "hooks/inprocess/source/python_calls.h"
#include "hooks/inprocess/source/python_loops.h"
#include "hooks/inprocess/source/python_text.h"

namespace devsan::hooks {

namespace {

// A container that is filled later: `{}`, `list()`, `defaultdict(list)`.
bool is_filled_later(std::string_view value) {
  constexpr std::array<std::string_view, 4> kEmpty = {"list", "dict", "OrderedDict", "defaultdict"};
  if (value == "[]" || value == "{}") return true;
  const auto call = call_text(value);
  if (!call) return false;
  const std::string_view type = std::string_view(call->callee).substr(call->callee.rfind('.') + 1);
  const bool given = !call->arguments.empty() && type != "defaultdict";
  return !given && std::ranges::find(kEmpty, type) != kEmpty.end();
}

}  // namespace

// The loop around the line that binds the name, or the only assignment above it in the same function.
std::optional<DeviceTrail::TakenHere> DeviceTrail::taking_here(const std::string& name) {
  const SourceLines& here = lines(file_);
  if (auto taken = taken_by_loop(statement_at(here, line_), name)) return TakenHere{line_, std::move(*taken)};
  const int definition = enclosing_line(here, line_, "def ");
  int at = line_;
  while ((at = enclosing_line(here, at, "for ")) > definition) {
    if (auto taken = taken_by_loop(statement_at(here, at), name)) return TakenHere{at, std::move(*taken)};
  }
  const std::vector<int> assigned = assignments_of(here, name, definition + 1, line_);
  if (assigned.size() != 1) return std::nullopt;
  auto taken = taken_by_assignment(statement_at(here, assigned.front()), name);
  return taken ? std::optional(TakenHere{assigned.front(), std::move(*taken)}) : std::nullopt;
}

std::optional<std::string> DeviceTrail::taken_out(const std::string& name, Stop& stop) {
  const Standing here = standing();
  if (const auto taken = taking_here(name)) {
    line_ = taken->line;
    auto value = taken->from.entries ? entry_in(taken->from.source, kMaxResults, stop)
                                     : result_of(taken->from.source, taken->from.element, stop);
    if (value) return value;
  }
  return_to(here);
  stop = Stop{{}, name};
  return std::nullopt;
}

std::vector<DeviceTrail::Stop> DeviceTrail::follow_call(const std::string& call) {
  constexpr std::string_view kChooses = " if ";
  Stop stop{{}, call_text(call).value_or(CallText{}).callee};
  const auto value = go_to_return(call, std::nullopt);
  if (!value) return {};
  if (is_identifier(*value)) return follow(*value);
  // Whether there is an accelerator at all is nobody's choice.
  const bool chooses = value->find(kChooses) != value->npos;
  if (!chooses || value->find("is_available") != value->npos) return {};
  stop.at = position_here();
  return {std::move(stop)};
}

// To the line of the function that a call runs which hands back its result, and what that is; none where the function
// is not in the file, or not the only one of its name.
std::optional<std::string> DeviceTrail::go_to_return(std::string_view called, std::optional<std::size_t> element) {
  const auto call = call_text(called);
  const int definition = call ? definition_called(lines(file_), line_, call->callee) : 0;
  auto value = definition != 0 ? value_returned(lines(file_), definition, element) : std::nullopt;
  if (!value) return std::nullopt;
  line_ = value->line;
  frame_.reset();
  return std::move(value->text);
}

// Several results are no place of their own: what the function gives the variable that it hands back decides.
std::optional<std::string> DeviceTrail::result_of(std::string_view called, std::optional<std::size_t> element,
                                                  Stop& stop) {
  // A function may be written to call itself, by another meaning of its name.
  if (++results_ > kMaxResults) return std::nullopt;
  auto value = go_to_return(called, element);
  if (value && is_identifier(*value)) {
    stop = Stop{{}, *value};
    return of_variable(*value, stop);
  }
  return value && decides_place(*value) ? value : std::nullopt;
}

std::vector<DeviceTrail::Stop> DeviceTrail::follow_table(const std::string& table) {
  Stop stop{{}, table};
  if (!entry_in(table, kMaxResults, stop)) return {};
  stop.at = position_here();
  return {std::move(stop)};
}

// Of the dictionary that the line writes down, to the line of the only entry that says the device; stays where there is
// none, or several.
void DeviceTrail::go_to_entry() {
  const SourceLines& here = lines(file_);
  int found = 0;
  for (int k = line_; k == line_ || goes_on_to(here, line_, k); ++k) {
    const std::string_view line = here[k];
    const std::size_t colon = line.rfind(": ");
    if (colon == line.npos) continue;
    const std::string_view value = line.substr(colon + 2);
    if (!says_place(trimmed(value.substr(0, end_of_expression(value, 0))), device_)) continue;
    if (found != 0) return;
    found = k;
  }
  if (found != 0) line_ = found;
}

// The line that puts the only entries into a container, or the dictionary that is written down.
std::optional<std::string> DeviceTrail::entry_in(const std::string& container, int depth, Stop& stop) {
  if (depth == 0) return std::nullopt;
  if (is_dict_display(container)) {
    go_to_entry();
    return "";
  }
  if (call_text(container)) {
    const auto value = go_to_return(container, std::nullopt);
    return value ? entry_in(unwrapped(*value), depth - 1, stop) : std::nullopt;
  }
  const int used = line_;
  const auto made = display_of(container);
  if (!made) return entry_given(container, depth, stop);
  stop.text = container + "[...]";
  if (!is_filled_later(*made)) return entry_in(unwrapped(*made), depth - 1, stop);
  const bool attribute = container.starts_with("self.");
  const auto put =
      value_put(lines(file_), container, attribute ? 1 : line_, attribute ? lines(file_).count() + 1 : used);
  if (!put) return std::nullopt;
  line_ = put->line;
  return put->text;
}

// Of a container that the function was given.
std::optional<std::string> DeviceTrail::entry_given(const std::string& container, int depth, Stop& stop) {
  Stop given{{}, container};
  if (!is_identifier(container)) return std::nullopt;
  const auto value = given_argument(given);
  return value && !value->empty() ? entry_in(unwrapped(*value), depth - 1, stop) : std::nullopt;
}

}  // namespace devsan::hooks

#include "hooks/inprocess/evidence/device_trail.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/evidence/call_frames.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/factory_text.h"
#include "trace/function_names.h"
#include "trace/words.h"

namespace devsan::hooks {

namespace {

constexpr int kMaxStops = 6;
constexpr int kMaxComputed = 4;  // variables that one is computed from, one after the other
constexpr int kMaxScopes = 4;    // functions inside of functions

std::string_view function_of(const trace::Position& at) {
  return runtime.recorder->string(at.function);
}

// "fill" of "Net.fill", and of "Net.fill.<locals>.<listcomp>".
std::string_view own_name(const trace::Position& at) {
  const std::string_view function = trace::function_around(function_of(at));
  return function.substr(function.rfind('.') + 1);
}

// Who asks another value for its device, as `x.device`, has decided: how that value came there is its own history.
std::string followed_on(std::string_view value) {
  const bool of_value = value.ends_with(".device") && value != "self.device";
  if (of_value) return "";
  return entry_reference(value) ? std::string(value) : device_reference(value);
}

bool is_attribute_of_self(std::string_view expression) {
  return expression.starts_with("self.") && is_identifier(expression.substr(5));
}

// "self.pipe" of `self.pipe.device`; empty for any other value.
std::string object_asked(std::string_view value) {
  constexpr std::string_view kDevice = ".device";
  if (!value.ends_with(kDevice) || value == "self.device" || value == "torch.device") return "";
  value.remove_suffix(kDevice.size());
  const bool path = std::ranges::all_of(value, [](char c) { return trace::is_word(c) || c == '.'; });
  return path ? std::string(value) : std::string();
}

// `next(model.parameters()).device`: of one of them, which stands for all.
bool asks_weights(std::string_view value) {
  return value.ends_with(".device") &&
         (value.find("parameters()") != value.npos || value.find("buffers()") != value.npos);
}

// "name" of `for name in …`, in whatever statement.
bool binds_in_loop(std::string_view statement, const std::string& name) {
  for (std::size_t at = name_in(statement, "for"); at != statement.npos; at = name_in(statement, "for", at + 1)) {
    const std::size_t in = statement.find(" in ", at);
    if (in != statement.npos && has_word(statement.substr(at, in - at), name)) return true;
  }
  return false;
}

// "self.get_device" of `self.get_device()`; empty for all that is more than to call a function.
std::string function_called(std::string_view value) {
  const auto call = call_text(value);
  const auto of_path = [](char c) { return trace::is_word(c) || c == '.'; };
  const bool plain = call && call->callee != "torch.device" && std::ranges::all_of(call->callee, of_path);
  return plain ? call->callee : std::string();
}

// `device_of(batch)`, `self.get_device()`: a function that is named for it computes a device.
bool computes_device(std::string_view value) {
  const std::string function = function_called(value);
  return function.substr(function.rfind('.') + 1).find("device") != std::string::npos;
}

// `"cpu"` of `torch.device("cpu")`; any other value itself.
std::string_view device_literal(std::string_view value) {
  const bool makes_device = value.starts_with("torch.device(") && value.ends_with(')');
  return makes_device ? value.substr(13, value.size() - 14) : value;
}

// A call gives a device as a literal, or leaves it at one.
bool says_device(const Given& given) {
  const bool given_here = given.by == Given::By::value || given.by == Given::By::standard;
  return given_here && (given.text.starts_with('"') || given.text.starts_with('\''));
}

// "cuda:1" is not cuda:0, and "cuda" may be any of them.
bool fits(std::string_view literal, std::string_view device) {
  literal.remove_prefix(1);
  literal = literal.substr(0, literal.find_first_of("\"'"));
  return literal == device || literal == device.substr(0, device.find(':'));
}

// The line that called the function is known, whatever it gives.
Given known_call(const Given& given) {
  return given.by == Given::By::nobody || given.by == Given::By::others ? Given{Given::By::value, ""} : given;
}

}  // namespace

bool says_place(std::string_view value, std::string_view device) {
  const std::string_view said = device_literal(value);
  return (said.starts_with('"') || said.starts_with('\'')) && fits(said, device);
}

// `"cpu"`, `torch.device("cpu")`; a value that is brought to the host, whose device is asked for; or any mention of
// "cuda", which is no number; or the type alone of a device; or an attribute that says a device; or the weights of a
// model; or a function named for it.
bool decides_place(std::string_view value) {
  if (asks_weights(value) || computes_device(value) || value.ends_with(".device.type")) return true;
  for (const std::string_view literal : {"\"cuda\"", "'cuda'"}) {
    if (value.find(literal) != value.npos) return true;
  }
  const std::string_view said = device_literal(value);
  const bool on_host = said == "\"cpu\"" || said == "'cpu'" || value.ends_with(".cpu()");
  return on_host || (is_attribute_of_self(value) && value.find("device") != value.npos);
}

DeviceTrail::DeviceTrail(const trace::Position& begin, std::uint32_t calls, std::string_view device)
    : frames_(call_frames(begin, calls)), frame_(0), file_(begin.file), line_(begin.line), device_(device) {}

std::vector<DeviceTrail::Stop> DeviceTrail::follow(std::string expression) {
  std::vector<Stop> stops;
  while (!expression.empty() && stops.size() < kMaxStops) {
    if (expression.starts_with("**")) {
      expression = unpacked(expression, stops);
      continue;
    }
    if (const auto entry = entry_reference(expression)) {
      expression = entry_of(*entry, stops);
      continue;
    }
    const bool attribute = is_attribute_of_self(expression);
    Stop stop{{}, expression};
    std::optional<std::string> value;
    if (attribute) value = stored_attribute(expression);
    if (is_identifier(expression)) value = of_variable(expression, stop);
    if (!value) break;
    stop.at = position_here();
    stops.push_back(std::move(stop));
    expression = followed_on(*value);
  }
  return stops;
}

void DeviceTrail::return_to(const Standing& place) {
  file_ = place.file;
  line_ = place.line;
  frame_ = place.frame;
}

// An argument, or what the function decides: also where it is given none, as by `if device is None: device = "cuda"`. A
// variable that is neither may be one of the function around.
std::optional<std::string> DeviceTrail::of_variable(const std::string& name, Stop& stop) {
  for (int scopes = 0; scopes < kMaxScopes; ++scopes) {
    if (binds_in_loop(statement_at(lines(file_), line_), name)) return taken_out(name, stop);
    const Standing here = standing();
    auto given = given_argument(stop);
    const bool left_none = given && stop.text == name + "=None";
    if (given && !left_none) return given;
    const Standing there = standing();
    const Stop left = std::exchange(stop, Stop{{}, name});
    return_to(here);
    if (auto chosen = chosen_here(name, stop)) return chosen;
    if (auto taken = taken_out(name, stop)) return taken;
    if (left_none) {
      stop = left;
      return_to(there);
      return given;
    }
    if (!leave_function(name)) return std::nullopt;
  }
  return std::nullopt;
}

// To the function around that of the line, where that one does not bind the variable itself.
bool DeviceTrail::leave_function(const std::string& name) {
  const SourceLines& here = lines(file_);
  const int definition = enclosing_line(here, line_, "def ");
  if (definition == 0 || enclosing_line(here, definition, "def ") == 0) return false;
  const int end = end_of_function(here, line_);
  if (parameter_of(statement_at(here, definition), name)) return false;
  if (!assignments_of(here, name, definition + 1, end + 1).empty()) return false;
  for (int k = definition + 1; k <= end; ++k) {
    if (has_word(here[k], name) && binds_in_loop(here[k], name)) return false;
  }
  go_to_call(definition);
  return true;
}

const SourceLines& DeviceTrail::lines(trace::StringId file) {
  if (!lines_ || lines_of_ != file) lines_.emplace(files_.whole(file));
  lines_of_ = file;
  return *lines_;
}

trace::Position DeviceTrail::position_here() {
  const bool calling = frame_ && frames_[*frame_].line == line_;
  if (calling) return frames_[*frame_];
  const SourceLines& here = lines(file_);
  const bool decorator = here[line_].substr(indentation(here[line_])).starts_with('@');
  return position_at(file_, line_, qualified_function(here, decorator ? line_ + 2 : line_));
}

bool DeviceTrail::runs_function_of(const trace::Position& frame, int line) {
  const int definition = enclosing_line(lines(file_), line, "def ");
  const std::string name = definition != 0 ? defined_name(lines(file_)[definition], "def ") : "";
  return frame.file == file_ && frame.line > definition && own_name(frame) == name &&
         enclosing_line(lines(file_), frame.line, "def ") == definition;
}

// Whether the function of frame `k` was called as a method of the object whose method runs in the frame around it.
bool DeviceTrail::same_object_around(std::size_t k) {
  if (k + 1 >= frames_.size()) return false;
  if (is_comprehension(frames_[k])) return true;
  const auto call = call_text(call_source(frames_[k + 1], std::string(own_name(frames_[k]))));
  if (!call) return false;
  const std::string_view callee = call->callee;
  return callee.starts_with("super().") || (callee.starts_with("self.") && is_identifier(callee.substr(5)));
}

// Of the frames, the one that stored an attribute there belongs to the same object: another object's constructor may
// run around this one's method.
void DeviceTrail::go_to_store(int line) {
  std::optional<std::size_t> found;
  for (std::size_t k = frame_.value_or(frames_.size()); k < frames_.size() && !found; ++k) {
    if (runs_function_of(frames_[k], line)) {
      found = k;
    } else if (!same_object_around(k)) {
      break;
    }
  }
  line_ = line;
  frame_ = found;
}

void DeviceTrail::go_to_call(int line) {
  const auto found =
      std::ranges::find_if(frames_, [&](const trace::Position& one) { return runs_function_of(one, line); });
  line_ = line;
  frame_.reset();
  if (found != frames_.end()) frame_ = static_cast<std::size_t>(found - frames_.begin());
}

std::optional<DeviceTrail::Function> DeviceTrail::function_here() {
  const SourceLines& here = lines(file_);
  const int definition = enclosing_line(here, line_, "def ");
  if (definition == 0) return std::nullopt;
  const int type = enclosing_line(here, definition, "class ");
  std::string name = defined_name(here[definition], "def ");
  if (name == "__init__" && type != 0) name = defined_name(here[type], "class ");
  return Function{definition, std::move(name), type != 0 && is_bound(statement_at(here, definition))};
}

// Of several lines that store an attribute, the last above the one that reads it, in its own function, where that is
// sure to run: it stands in a block that the reading line is in, too.
void DeviceTrail::keep_the_last_here(std::vector<Stored>& found) {
  const SourceLines& here = lines(file_);
  const int definition = enclosing_line(here, line_, "def ");
  std::optional<Stored> last;
  for (const Stored& one : found) {
    const int around = enclosing_line(here, one.line, "");
    const bool in_block = around <= definition || (around < line_ && end_of_block(here, one.line, around) >= line_);
    if (one.line < line_ && enclosing_line(here, one.line, "def ") == definition && in_block) last = one;
  }
  if (last) found.assign(1, *last);
}

// What the only line in the class stores that gives the attribute something else than None; of several, the last of the
// function itself, or the only one that says the device in so many words.
std::optional<std::string> DeviceTrail::stored_attribute(const std::string& expression) {
  const SourceLines& here = lines(file_);
  const int type = enclosing_line(here, line_, "class ");
  if (type == 0) return std::nullopt;
  const std::size_t outer = indentation(here[type]);
  std::vector<Stored> found;
  for (int k = type + 1; k <= here.count(); ++k) {
    const std::string_view text = here[k];
    if (is_blank(text)) continue;
    if (indentation(text) <= outer) break;
    if (text.find(expression) == text.npos) continue;
    const auto assigned = assigned_to(statement_at(here, k), expression);
    if (assigned && *assigned != "None") found.push_back({*assigned, k});
  }
  if (found.size() > 1) keep_the_last_here(found);
  if (found.size() > 1) std::erase_if(found, [this](const Stored& one) { return !says_place(one.value, device_); });
  if (found.size() > 1) return std::nullopt;
  const int property = found.empty() ? cached_property(type, expression.substr(expression.find('.') + 1)) : 0;
  if (property != 0) found.push_back({"", property});
  if (found.empty()) return std::nullopt;
  go_to_store(found.front().line);
  return found.front().value;
}

// The decorator of a property that keeps what it gave first; 0 without one.
int DeviceTrail::cached_property(int type, const std::string& name) {
  const int decorator = decorator_of(lines(file_), type, name);
  return lines(file_)[decorator].find("cached_property") != std::string_view::npos ? decorator : 0;
}

// What the only line of the function above stores in a variable.
std::optional<DeviceTrail::Stored> DeviceTrail::stored_variable(const std::string& name) {
  const SourceLines& here = lines(file_);
  const int definition = enclosing_line(here, line_, "def ");
  std::optional<Stored> stored;
  for (int k = line_ - 1; k > definition; --k) {
    auto assigned = assigned_to(statement_at(here, k), name);
    if (!assigned) continue;
    if (stored && stored->value != *assigned) return std::nullopt;
    if (!stored) stored = Stored{std::move(*assigned), k};
  }
  return stored;
}

// What a variable of the same function decides by itself: `place = "cuda" if x.is_cuda else "cpu"`, a literal without a
// number; `device = self.device`; or `steps = torch.arange(n)`, which is made without a device and takes with it what
// follows `steps.device`; or `device = pipe.device`; or `device = self.resolve()`, by whatever call.
std::optional<std::string> DeviceTrail::chosen_here(const std::string& name, Stop& stop) {
  if (enclosing_line(lines(file_), line_, "def ") == 0) return std::nullopt;
  auto stored = stored_variable(name);
  if (!stored) return std::nullopt;
  const bool named_for_device = name.find("device") != name.npos && !function_called(stored->value).empty();
  if (!named_for_device && !decides_place(stored->value)) {
    stop.object = object_asked(stored->value);
    auto made = made_above(name, kMaxComputed);
    if (made) stop.object.clear();
    if (!made && stop.object.empty()) return std::nullopt;
    if (made) stored = std::move(made);
  }
  line_ = stored->line;
  return stored->value;
}

// The line above that makes, by default, a variable or what that is computed from. None where there are several.
std::optional<DeviceTrail::Stored> DeviceTrail::made_above(const std::string& name, int depth) {
  auto stored = stored_variable(name);
  if (!stored || is_made_by_default(stored->value)) return stored;
  if (depth == 0 || !stays_on_device(stored->value)) return std::nullopt;
  std::optional<Stored> found;
  for (const std::string& part : variables_in(stored->value)) {
    auto one = part != name ? made_above(part, depth - 1) : std::nullopt;
    if (one && found) return std::nullopt;
    if (one) found = std::move(one);
  }
  return found;
}

// What the only statement outside of all functions and classes stores in a variable.
std::optional<DeviceTrail::Stored> DeviceTrail::stored_globally(const std::string& name) {
  const SourceLines& here = lines(file_);
  std::optional<Stored> stored;
  for (const int line : assignments_of(here, name, 1, here.count() + 1)) {
    if (indentation(here[line]) != 0) continue;
    if (stored) return std::nullopt;
    stored = Stored{assigned_to(statement_at(here, line), name).value_or(""), line};
  }
  return stored;
}

// What a dictionary was made with: the only statement above, in the same function, in the class, or outside of all,
// that stores it.
std::optional<std::string> DeviceTrail::display_of(const std::string& name) {
  if (is_attribute_of_self(name)) return stored_attribute(name);
  auto stored = stored_variable(name);
  const int definition = enclosing_line(lines(file_), line_, "def ");
  if (!stored && definition != 0 && !parameter_of(statement_at(lines(file_), definition), name))
    stored = stored_globally(name);
  if (!stored) return std::nullopt;
  line_ = stored->line;
  return stored->value;
}

// The device among what a dictionary of keyword arguments was made with: `x.to(**self.options)`. One without a device
// leaves it at the default.
std::string DeviceTrail::unpacked(const std::string& expression, std::vector<Stop>& stops) {
  const auto display = display_of(expression.substr(2));
  if (!display) return "";
  std::string device = followed_on(entry_of_display(*display, "device"));
  const bool complete = display->find("**") == display->npos && is_dict_display(*display);
  if (device.empty() && complete) stops.push_back({position_here(), expression});
  return device;
}

// `options["device"]`: where the dictionary is made that has it, or that several are merged into.
std::string DeviceTrail::entry_of(const EntryReference& entry, std::vector<Stop>& stops) {
  const auto display = display_of(entry.container);
  if (!display || !is_dict_display(*display)) return "";
  const std::string value = entry_of_display(*display, entry.key);
  if (!value.empty() || display->find("**") != display->npos || display->find(" | ") != display->npos) {
    stops.push_back({position_here(), entry.container + "['" + entry.key + "']"});
  }
  return followed_on(value);
}

std::optional<std::string> DeviceTrail::given_argument(Stop& stop) {
  const auto function = function_here();
  if (!function) return std::nullopt;
  const auto parameter = parameter_of(statement_at(lines(file_), function->definition), stop.text);
  if (!parameter || (function->bound && parameter->index == 0u)) return std::nullopt;
  const trace::StringId file = file_;
  Given given = frame_ ? given_by_caller(*function, *parameter) : given_by_only_call(*function, *parameter);
  if (given.by == Given::By::nobody) return std::nullopt;
  if (given.by == Given::By::standard) {
    stop.text += "=" + given.text;
    stop.default_file = file;
    stop.default_line = function->definition;
  }
  return given.by == Given::By::value ? std::move(given.text) : std::string();
}

// The source of a call; where no columns are known, that of the statement from the call of `name` on.
std::string DeviceTrail::call_source(const trace::Position& at, const std::string& name) {
  const SourceLines& there = lines(at.file);
  if (at.column >= 0) return code_text(there, at);
  const std::string statement = statement_at(there, at.line);
  const std::size_t begin = call_in(statement, name);
  if (begin == statement.npos) return "";
  const std::size_t closing = closing_of(statement, begin + name.size());
  return closing == statement.npos ? "" : statement.substr(begin, closing + 1 - begin);
}

Given DeviceTrail::given_by_caller(const Function& function, const Parameter& parameter) {
  std::size_t k = *frame_;
  while (k < frames_.size() && is_comprehension(frames_[k])) ++k;
  if (k + 1 >= frames_.size()) return given_by_only_call(function, parameter);
  for (++k; k < frames_.size(); ++k) {
    const auto call = call_text(call_source(frames_[k], function.name));
    if (!call) return {};
    const Given given = given_for(parameter, *call, function.bound);
    if (given.by == Given::By::others) continue;
    frame_ = k;
    file_ = frames_[k].file;
    line_ = frames_[k].line;
    return known_call(given);
  }
  return {};
}

// The lines of the file that call a function of this name; one that does so twice counts twice.
std::vector<int> DeviceTrail::calls_of(const std::string& name) {
  const SourceLines& here = lines(file_);
  std::vector<int> found;
  for (int k = 1; k <= here.count(); ++k) {
    std::string_view rest = here[k];
    for (std::size_t at = call_in(rest, name); at != rest.npos; at = call_in(rest, name)) {
      found.push_back(k);
      rest.remove_prefix(at + 1);
    }
  }
  return found;
}

Given DeviceTrail::given_in(int line, const Function& function, const Parameter& parameter) {
  const auto call = call_text(call_source({file_, {}, line, line, -1, -1}, function.name));
  return call ? given_for(parameter, *call, function.bound) : Given{};
}

Given DeviceTrail::given_by_only_call(const Function& function, const Parameter& parameter) {
  std::vector<int> calls = calls_of(function.name);
  if (calls.size() > 1) {
    if (std::ranges::adjacent_find(calls) != calls.end()) return {};
    const auto given = [&](int line) { return given_in(line, function, parameter); };
    if (std::ranges::any_of(calls, [&](int line) { return !says_device(given(line)); })) return {};
    std::erase_if(calls, [&](int line) { return !fits(given(line).text, device_); });
  }
  if (calls.size() != 1) return {};
  const Given given = given_in(calls.front(), function, parameter);
  if (!call_text(call_source({file_, {}, calls.front(), calls.front(), -1, -1}, function.name))) return {};
  go_to_call(calls.front());
  return known_call(given);
}

}  // namespace devsan::hooks

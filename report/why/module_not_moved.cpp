// Parameters and buffers move with their module. One that stayed behind belongs to a module that `.to()` never reached:
// made and used apart from the model, as a loss is, or put into it after the move.
#include <algorithm>
#include <array>

#include "report/call_text.h"
#include "report/frames.h"
#include "report/operands.h"
#include "report/statement_text.h"
#include "report/why/decision.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/made_anew.h"
#include "report/why/rule.h"
#include "report/why/wording.h"
#include "trace/function_names.h"
#include "trace/words.h"

namespace devsan::report::why {
namespace {

// The call that made the part, in the function that made the model, and after that: most of the model has been moved by
// then. Null where the part is as old as the model, or nobody knows.
const Frame* made_later(const Operand& stayed, const Operand& tensor, const Evidence* bound) {
  const Evidence* elsewhere = evidence_of(stayed, trace::EvidenceKind::weights_elsewhere);
  if (bound == nullptr || elsewhere == nullptr || !elsewhere->text.starts_with(tensor.device + " ") ||
      stayed.lineage.empty()) {
    return nullptr;
  }
  for (const Frame& call : stayed.lineage.back().calls) {
    if (same_function(call, bound->at)) return call.line > bound->at.line ? &call : nullptr;
  }
  return nullptr;
}

// Where a part was put into a model that is mostly elsewhere. What the outermost module puts into itself when it is
// made would have been moved with it later: that is another mistake, unless it is still being made.
const Evidence* put_into_model(const Operand& stayed, const Operand& tensor, const Finding& finding) {
  const Evidence* put = place_of(stayed, trace::EvidenceKind::module_put_at, finding);
  const Evidence* elsewhere = evidence_of(stayed, trace::EvidenceKind::weights_elsewhere);
  if (put == nullptr || elsewhere == nullptr || !elsewhere->text.starts_with(tensor.device + " ")) return nullptr;
  if (!is_constructor(put->at) || !elsewhere->text.ends_with(" " + type_of_path(put->text))) return put;
  return is_running(put->at, finding) ? put : nullptr;
}

// The outermost module has been moved, and this came into it nobody knows where.
bool is_put_apart(const Operand& stayed, const Operand& tensor) {
  const Evidence* elsewhere = evidence_of(stayed, trace::EvidenceKind::weights_elsewhere);
  return elsewhere != nullptr && elsewhere->text.starts_with(tensor.device + " ") &&
         evidence_of(stayed, trace::EvidenceKind::module_put_at) == nullptr;
}

Explanation put_unmoved(const Evidence& put, const Operand& stayed, const Operand& tensor) {
  const std::string part = "`" + std::string(attribute_of_path(put.text)) + "`";
  const std::string edit = assigned_after_move(put.at, "'" + tensor.device + "'");
  // When the others of a constructor moved, before this line or long after it, is not known.
  const std::string then = is_constructor(put.at) ? ", but nothing has moved this part."
                                                  : " by then, and nothing has moved this part since.";
  return {cause_at(put.at, stayed,
                   mention_first(stayed) + " is a " + std::string(name_of(stayed.is)) + " of " + part +
                       ", which is put into a `" + type_of_path(put.text) +
                       "` here and is on the CPU. Most of the model is on " + tensor.device + then),
          Fix{put.at.file, put.at.line,
              "Move " + part + " to " + tensor.device + " where it is put into the model" +
                  (edit.empty() ? "" : ": `" + edit + "`") + "; or move the whole model before it is used."}};
}

bool was_made_in(const Frame& function, const Operand& stayed) {
  const auto is_same = [&](const Frame& call) { return same_function(call, function); };
  return std::ranges::any_of(stayed.lineage.back().calls, is_same) || same_function(stayed.lineage.back().at, function);
}

Explanation put_after_move(const Frame& call, const Evidence& bound, const Operand& stayed, const Operand& tensor) {
  return {cause_at(call, stayed,
                   mention_first(stayed) + " is a " + std::string(name_of(stayed.is)) + " of `" + bound.text +
                       "`, made by this call in " + short_place(stayed.lineage.back().at) + ", on the CPU. Most of `" +
                       bound.text + "` is on " + tensor.device + ", and nothing has moved it since."),
          Fix{call.file, call.line,
              "Make it before `" + bound.text + "` is moved; or move `" + bound.text +
                  "` once more after this line: `" + bound.text + ".to('" + tensor.device + "')`."}};
}

// Where a weight was made; of one that was computed, as class weights are, the last line: the first may be that of the
// data. Null where nothing is known.
const LineageStep* birth_of(const Operand& weight) {
  if (weight.lineage.empty()) return nullptr;
  return weight.lineage.front().how == trace::How::derived ? &weight.lineage.front() : &weight.lineage.back();
}

// `model.resize(n)` of a model that is elsewhere by then: what the method makes goes into that, whoever has the method.
bool is_method_called_on(const Frame& call, const Evidence& bound, const Operand& stayed) {
  const std::string_view function = stayed.lineage.back().at.function;
  const std::string_view method = trace::own_name(function);
  const bool of_type = function.find('.') != function.npos && function.find('<') == function.npos;
  return of_type && call.statement().find(bound.text + "." + std::string(method) + "(") != std::string::npos;
}

// `net = Net().to(device)`: all of it, not what it is made of, as by `net = Net(head.to(device))`.
bool moves_whole(const Evidence& bound) {
  const auto assigned = split_assignment(bound.at.statement());
  const auto call = assigned ? split_call(assigned->value) : std::nullopt;
  if (!call || call->receiver.empty()) return false;
  const std::string_view method = assigned->value.substr(call->receiver.size());
  return calls_move(method.substr(0, method.find('(') + 1));
}

// `net = Net().to(device)` moved the model, and the call that made this one is none of those that made the model: it
// has come into it since.
bool came_later(const Operand& stayed, const Evidence* bound) {
  if (bound == nullptr || stayed.lineage.empty() || !calls_move(bound->at.statement())) return false;
  const LineageStep& made = stayed.lineage.back();
  const bool below = moves_whole(*bound) && same_function(made.at, bound->at) && made.at.line > bound->at.line;
  if (evidence_of(stayed, trace::EvidenceKind::model_spread) == nullptr && !below) return false;
  const auto is_bound = [&](const Frame& place) { return same_line(place, bound->at); };
  return !is_bound(made.at) && std::ranges::none_of(made.calls, is_bound);
}

Explanation made_for_moved(const LineageStep& made, const Evidence& bound, const Operand& stayed,
                           const Operand& tensor) {
  const std::string edit = with_argument(call_at(made.at), "device='" + tensor.device + "'");
  return {cause_at(made.at, stayed,
                   mention_first(stayed) + " is a " + std::string(name_of(stayed.is)) +
                       " made in this line, on the CPU, and put into `" + bound.text + "`, which " +
                       short_place(bound.at) + " has moved by itself. Nothing moves what comes into it later."),
          Fix{made.at.file, made.at.line,
              "Make it on the device of what it replaces, or of another weight" +
                  (edit.empty() ? "" : ", as by `" + edit + "`") + "; or move `" + bound.text + "` once more."}};
}

// "3" of a weight "3.scale" of a model; of one that goes by no longer path, what its name has before the last point.
std::string_view owner_path(const Operand& weight) {
  const Evidence* root = evidence_of(weight, trace::EvidenceKind::root_name);
  const std::string_view path = root != nullptr ? std::string_view(root->text) : std::string_view(weight.name);
  return path.substr(0, std::min(path.rfind('.'), path.size()));
}

// `self.shared[key] = Queue(n)`, hung into a model that was moved before: the constructor knows nothing of that, and
// the line that calls it does.
std::optional<Explanation> built_for_moved(const LineageStep& made, const Evidence& bound, const Operand& stayed,
                                           const Operand& tensor, const Finding& finding) {
  const Frame& call = made_by_call(made);
  if (&call == &made.at || makes_object(call) || !is_changeable(call, finding)) return std::nullopt;
  // The constructor had another weight of its own at hand then, and could have asked that for its device.
  if (is_weight(tensor) && owner_path(tensor) == owner_path(stayed)) return std::nullopt;
  return Explanation{
      cause_at(call, stayed,
               mention_first(stayed) + " is a " + std::string(name_of(stayed.is)) +
                   " of a module that this line makes, on the CPU. It has come into `" + bound.text + "`, which " +
                   short_place(bound.at) + " had moved before that: nothing moves what comes into it later."),
      move_module_where_made(call, tensor.device)};
}

// `for child in model.children(): child.to(device)`
Explanation left_by_children(const Evidence& children, const Operand& stayed, const Operand& tensor) {
  return {cause_at(children.at, stayed,
                   "The children of the `" + children.text + "` are moved to " + tensor.device + " here, one by one. " +
                       mention_first(stayed) + " is a " + std::string(name_of(stayed.is)) +
                       " of its own, and of no child: it stays on the CPU."),
          Fix{children.at.file, children.at.line,
              "Move what belongs to the module itself, too: `module.parameters(recurse=False)` and "
              "`module.buffers(recurse=False)`."}};
}

// `group = list(net.parameters())`, and then `net.adapter = nn.Linear(4, 4)`: what goes through the list later does not
// know of what was put into the model since.
std::optional<Explanation> put_after_collecting(const Evidence& loop, const Operand& stayed, const Operand& tensor,
                                                const Finding& finding) {
  const std::string_view statement = statement_of(loop.at.statement());
  const std::size_t in = statement.find(" in ");
  const Evidence* made = place_of(stayed, trace::EvidenceKind::module_made_at, finding);
  if (in == statement.npos || !statement.ends_with(':') || made == nullptr) return std::nullopt;
  const std::string collected(statement.substr(in + 4, statement.size() - in - 5));
  const auto put = split_assignment(made->at.statement());
  const bool into = put && put->target.find_first_of(".[") != std::string_view::npos && !makes_object(made->at);
  if (!std::ranges::all_of(collected, trace::is_word) || !into || same_function(made->at, loop.at)) return std::nullopt;
  return Explanation{cause_at(made->at, stayed,
                              "This line puts a part into the `" + loop.text + "`, on " + spoken_device(stayed.device) +
                                  ". " + short_place(loop.at) + " moves the parameters to " + tensor.device +
                                  " that are in `" + collected + "`, which was filled without it."),
                     Fix{made->at.file, made->at.line,
                         "Put it into the model before `" + collected +
                             "` is filled, or fill that anew; or make the part on " + tensor.device + " here."}};
}

// `for p in model.parameters(): p.data = p.data.to(device)`
std::optional<Explanation> left_by_parameters(const Operand& stayed, const Operand& tensor, const Finding& finding) {
  const Evidence* loop = place_of(stayed, trace::EvidenceKind::parameters_moved_at, finding);
  if (loop == nullptr || is_made_after(stayed, loop->at)) return std::nullopt;
  if (auto put = put_after_collecting(*loop, stayed, tensor, finding)) return put;
  const bool buffer = stayed.is == trace::NameKind::buffer;
  const bool own_alone = loop->at.statement().find("recurse=False") != std::string::npos;
  const std::string passed = buffer      ? " is a buffer, which `parameters()` does not give: it"
                             : own_alone ? " belongs to a child, which `recurse=False` leaves out: it"
                                         : " is not among those that this takes: it";
  return Explanation{
      cause_at(loop->at, stayed,
               "Parameters of the `" + loop->text + "` are moved to " + tensor.device + " here, one by one. " +
                   mention_first(stayed) + passed + " stays on " + spoken_device(stayed.device) + "."),
      Fix{loop->at.file, loop->at.line,
          buffer ? "Move the buffers, too: `for buffer in module.buffers(): buffer.data = "
                   "buffer.data.to('" +
                       tensor.device + "')`; or all at once, by `.to()` of the module."
                 : "Let this take every parameter that is used on " + tensor.device +
                       (own_alone ? ", also those of children: leave `recurse=False` out." : ".")}};
}

// `model[1] = Adapter(model[1])`: the module around children that were elsewhere by then makes weights of its own.
Explanation made_around_moved(const Evidence& children, const Operand& stayed, const Operand& tensor) {
  const LineageStep& made = stayed.lineage.back();
  const std::string edit = with_argument(call_at(made.at), "device='" + tensor.device + "'");
  return {cause_at(made.at, stayed,
                   mention_first(stayed) + " is a " + std::string(name_of(stayed.is)) +
                       " made in this line, on the CPU, by a `" + children.text + "` around modules that " +
                       short_place(children.at) + " had moved to " + tensor.device + " by then."),
          Fix{made.at.file, made.at.line,
              "Make it on the device of a weight of those" + (edit.empty() ? "" : ", as by `" + edit + "`") + "."}};
}

std::optional<Explanation> explained_by_children(const Operand& stayed, const Operand& tensor, const Evidence* bound,
                                                 const Finding& finding) {
  const Evidence* children = place_of(stayed, trace::EvidenceKind::children_moved_at, finding);
  if (children == nullptr) return std::nullopt;
  if (!is_made_after(stayed, children->at)) {
    const bool all = bound != nullptr && same_line(bound->at, children->at) && moves_whole(*bound);
    return all ? std::nullopt : std::optional(left_by_children(*children, stayed, tensor));
  }
  const Frame& made = stayed.lineage.back().at;
  // By the constructor, or by a method that this calls.
  const bool by_itself = is_constructor(made) || class_of(made) == children->text;
  if (!by_itself || !is_changeable(made, finding)) return std::nullopt;
  return made_around_moved(*children, stayed, tensor);
}

// Where the line that made it stores it, too, as an attribute, and stands in no constructor.
const Frame* stored_where_made(const Operand& stayed, const Finding& finding) {
  const Evidence* stored = place_of(stayed, trace::EvidenceKind::attribute_set_at, finding);
  if (stored == nullptr || stayed.lineage.empty()) return nullptr;
  const Frame& made = stayed.lineage.back().at;
  return same_line(stored->at, made) && !is_constructor(made) ? &made : nullptr;
}

// `m.running_mean = torch.zeros(n)` of a model that was moved where it was made, by whoever.
bool put_where_made(const Operand& stayed, const Evidence& bound, const Finding& finding) {
  return stored_where_made(stayed, finding) != nullptr && calls_move(bound.at.statement());
}

// `model.score = nn.Linear(n, classes)`, in a function that gives a model another part, of which some is on an
// accelerator by then.
bool is_put_into_spread(const Operand& stayed, const Finding& finding) {
  const Frame* put = stored_where_made(stayed, finding);
  const auto assigned = put != nullptr ? split_assignment(put->statement()) : std::nullopt;
  return assigned && !assigned->target.starts_with("self.") &&
         evidence_of(stayed, trace::EvidenceKind::model_spread) != nullptr;
}

Explanation made_for_spread(const LineageStep& made, const Operand& stayed, const Operand& tensor) {
  const std::string edit = with_argument(call_at(made.at), "device='" + tensor.device + "'");
  return {cause_at(made.at, stayed,
                   mention_first(stayed) + " is a " + std::string(name_of(stayed.is)) +
                       " made in this line, on the CPU, and put into a model of which other parts are on accelerators. "
                       "Nothing has moved it since."),
          Fix{made.at.file, made.at.line,
              "Make it where what it meets is" + (edit.empty() ? ", on " + tensor.device : ": `" + edit + "`") +
                  "; or put it in before the model is placed."}};
}

// `self.state = self.initial.clone()` replaces a buffer by what a plain attribute holds, and that does not move.
std::optional<Explanation> made_of_plain_attribute(const Operand& stayed, const Operand& tensor, const Evidence* bound,
                                                   const Finding& finding) {
  const Evidence* stored = place_of(stayed, trace::EvidenceKind::attribute_set_at, finding);
  const bool moved = model_is_elsewhere(stayed) || (bound != nullptr && moves_whole(*bound));
  if (stored == nullptr || !moved) return std::nullopt;
  const auto source = source_attribute(stayed, stored->at, attribute_of_path(stored->text));
  if (!source) return std::nullopt;
  const Frame& place = source->step->at;
  return Explanation{
      cause_at(place, stayed,
               mention_first(stayed) + ", a " + std::string(name_of(stayed.is)) + ", is replaced in " +
                   short_place(stored->at) + " by what is made of `self." + source->name +
                   "`. That is a plain attribute, which did not move to " + tensor.device + " with the module."),
      register_as_buffer(place, source->name)};
}

// `Explainer(net, EdgeScorer(5))` keeps a module that its caller has made for it: the line that made it is the one that
// knows where the others are.
std::optional<Explanation> given_to_keeper(const Operand& stayed, const Operand& tensor, const Evidence* bound,
                                           const Finding& finding) {
  if (bound == nullptr || !keeps_argument(bound->at, bound->text) || stayed.lineage.empty()) return std::nullopt;
  const Frame& call = made_by_call(stayed.lineage.back());
  if (&call == &stayed.lineage.back().at || !is_changeable(call, finding)) return std::nullopt;
  return Explanation{cause_at(call, stayed,
                              mention_first(stayed) + " is a " + std::string(name_of(stayed.is)) +
                                  " of a module that is made in this line, on the CPU, and kept as `" + bound->text +
                                  "` by a `" + std::string(class_of(bound->at)) + "`. Nothing has moved it since."),
                     move_module_where_made(call, tensor.device)};
}

// `self.metrics[name] = Accuracy(n)`, of a `self.metrics = nn.ModuleDict().to(device)` that had nothing in it by then.
std::optional<Explanation> put_into_container(const Operand& stayed, const Operand& tensor, const Evidence* bound,
                                              const Finding& finding) {
  if (bound == nullptr || stayed.lineage.empty() || !calls_move(bound->at.statement())) return std::nullopt;
  const Frame& call = made_by_call(stayed.lineage.back());
  if (same_line(call, bound->at) || !is_changeable(call, finding)) return std::nullopt;
  const std::string_view text = bound->text;
  const std::string name(text.substr(text.rfind('.') + 1));
  constexpr std::array<std::string_view, 5> kPuts = {"[", ".append(", ".add_module(", ".insert(", ".extend("};
  const auto puts = [&](std::string_view put) {
    return find_name(call.statement(), bound->text + std::string(put)) != std::string_view::npos ||
           call.statement().find("." + name + std::string(put)) != std::string::npos;
  };
  if (std::ranges::none_of(kPuts, puts)) return std::nullopt;
  return Explanation{
      cause_at(call, stayed,
               mention_first(stayed) + " is a " + std::string(name_of(stayed.is)) +
                   " of a module that this line makes, on the CPU, and puts into `" + bound->text + "`, which " +
                   short_place(bound->at) + " has moved before that. Nothing moves what comes into it later."),
      move_module_where_made(call, tensor.device)};
}

// `head = Head(n)` below `model.to(device)`, in the function that puts it into the model in the place of another one,
// which had moved.
std::optional<Explanation> made_below_move(const Operand& stayed, const Operand& tensor, const Finding& finding) {
  const Evidence* moved = place_of(stayed, trace::EvidenceKind::made_alike_moved_at, finding);
  const Evidence* asked = place_of(stayed, trace::EvidenceKind::asked_apart_at, finding);
  if (moved == nullptr || asked == nullptr || !model_is_elsewhere(stayed)) return std::nullopt;
  const bool below = same_function(asked->at, moved->at) && asked->at.line > moved->at.line;
  if (!below || asked->at.function == "<module>") return std::nullopt;
  return Explanation{cause_at(asked->at, stayed,
                              mention_first(stayed) + " is a " + std::string(name_of(stayed.is)) +
                                  " of a module that this line makes, on the CPU. " + short_place(moved->at) +
                                  " has moved the model to " + tensor.device + " before that, with the one like it."),
                     move_module_where_made(asked->at, tensor.device)};
}

// `self.head = nn.Linear(n, m)`, beside `self.body = Body(n, device=self.device)`: of two parts that one function makes
// it tells one the device.
std::optional<Explanation> made_beside_told(const Operand& stayed, const Operand& tensor, const Finding& finding) {
  if (stayed.lineage.empty()) return std::nullopt;
  const LineageStep& made = stayed.lineage.back();
  const Evidence* told = is_changeable(made.at, finding) ? device_given_beside(made, tensor, finding) : nullptr;
  if (told == nullptr || names_device(made.at)) return std::nullopt;
  const std::string edit = with_argument(call_at(made.at), "device='" + tensor.device + "'");
  return Explanation{cause_at(made.at, stayed,
                              "This line makes " + mention(stayed) + " on the CPU. " + short_place(told->at) +
                                  ", in the same function, gives `" + told->text + "` to what it meets, which is on " +
                                  tensor.device + "."),
                     Fix{made.at.file, made.at.line,
                         "Make it on the same device" + (edit.empty() ? "" : ", as by `" + edit + "`") +
                             "; or move the whole module when it is made."}};
}

// `self.target = copy.deepcopy(self.net)` of a net that has not been moved either.
std::optional<Explanation> copied_unmoved(const Operand& stayed, const Operand& tensor, const Finding& finding) {
  const Evidence* original = place_of(stayed, trace::EvidenceKind::copy_of_module_at, finding);
  if (original == nullptr || stayed.lineage.empty()) return std::nullopt;
  return Explanation{cause_at(original->at, stayed,
                              mention_first(stayed) + " is a " + std::string(name_of(stayed.is)) + " of a copy that " +
                                  short_place(stayed.lineage.front().at) + " takes of `" + original->text +
                                  "`, which gets its value here, on the CPU. Nothing has moved either of them since."),
                     Fix{original->at.file, original->at.line,
                         "Move `" + original->text + "` with `.to('" + tensor.device + "')` before it is copied."}};
}

// `for name, loss in losses.items():`, the same in a comprehension, `loss = losses["l1"]` and `losses.get("l1")`: the
// variable is one more name for what a container or another object has.
bool takes_out(const Evidence& bound) {
  const std::string_view line = bound.at.statement();
  if (only_takes_apart(line)) return true;
  constexpr std::string_view kFor = "for ";
  for (std::size_t at = find_name(line, "for"); at != line.npos; at = find_name(line, "for", at + 1)) {
    const std::size_t in = line.find(" in ", at);
    if (in != line.npos && find_name(line.substr(at + kFor.size(), in - at - kFor.size()), bound.text) != line.npos) {
      return true;
    }
  }
  const auto assignment = split_assignment(line);
  const auto call = assignment ? split_call(assignment->value) : std::nullopt;
  constexpr std::array<std::string_view, 3> kTakers = {"get", "pop", "popleft"};
  return call && !call->receiver.empty() && trace::calls_method(assignment->value, kTakers);
}

// `vgg = build_features()`, of a helper that returns what it makes and knows no device: the line that takes it is the
// one to move it in. The line that makes it, where that is another case.
const Frame& taken_from_builder(const Evidence& made, const Operand& stayed, const Finding& finding) {
  const bool returns = statement_of(made.at.statement()).starts_with("return ") && !is_constructor(made.at);
  const std::vector<Frame>& calls = stayed.lineage.back().calls;
  if (!returns || calls.empty() || !same_line(stayed.lineage.back().at, made.at)) return made.at;
  const Frame& call = calls.front();
  const auto assigned = split_assignment(call.statement());
  const bool takes = assigned && assigned->value == call_at(call) && assigned->value.find(")(") == std::string::npos;
  return takes && is_changeable(call, finding) ? call : made.at;
}

// The line that made the module, where the one that names it has only taken it out of something; and where it goes by
// no name, as in `Resample(rate, 16000)(wave)`: its constructor made the weight rightly.
std::optional<Explanation> made_and_kept(const Operand& stayed, const Operand& tensor, const Evidence* bound,
                                         const Finding& finding) {
  const Evidence* made = place_of(stayed, trace::EvidenceKind::module_made_at, finding);
  if (made == nullptr) return std::nullopt;
  const bool taken = bound != nullptr && !same_line(made->at, bound->at) && takes_out(*bound);
  const bool nameless = bound == nullptr && !is_put_apart(stayed, tensor);
  if (!taken && !nameless) return std::nullopt;
  const Frame& place = stayed.lineage.empty() ? made->at : taken_from_builder(*made, stayed, finding);
  const std::string where = same_line(place, made->at) ? "" : ", in " + short_place(made->at);
  return Explanation{
      cause_at(place, stayed,
               mention_first(stayed) + " is a " + std::string(name_of(stayed.is)) + " of a `" + made->text +
                   "` that is made in this line" + where + ", on the CPU. Nothing has moved it since" +
                   (taken ? ", " + short_place(bound->at) + " takes it as it is." : ".")),
      move_module_where_made(place, tensor.device)};
}

// `self.register_buffer("table", torch.eye(n))` in the constructor of a loss that a script makes, and moves nowhere:
// the tensor came to the CPU there, and what has to change is the line that makes the loss.
std::optional<Explanation> made_by_own_class(const Operand& stayed, const Operand& tensor, const Evidence* bound,
                                             const Finding& finding) {
  if (bound == nullptr || bound->at.function != "<module>" || belongs_to_part(stayed) || stayed.lineage.empty())
    return std::nullopt;
  const Frame& made = stayed.lineage.back().at;
  if (!registers_weight(made) || !makes_object(made) || !is_changeable(made, finding)) return std::nullopt;
  return Explanation{cause_at(made, stayed,
                              mention_first(stayed) + " begins in this line, on the CPU, as a " +
                                  std::string(name_of(stayed.is)) + " of `" + bound->text + "`, which " +
                                  short_place(bound->at) + " makes. Nothing has moved `" + bound->text + "` since."),
                     move_module_where_made(bound->at, tensor.device)};
}

}  // namespace

std::optional<Explanation> module_not_moved(const Finding& finding) {
  const auto stayed = std::ranges::find_if(finding.operands, [](const Operand& operand) {
    return operand.odd && is_weight(operand) && operand.on_cpu() && !was_moved(operand);
  });
  if (stayed == finding.operands.end() || !finding.where) return std::nullopt;
  const Operand* tensor = counterpart_of(*stayed, finding.operands);
  if (tensor == nullptr) return std::nullopt;

  if (auto copied = copied_unmoved(*stayed, *tensor, finding)) return copied;
  const Evidence* outermost = place_of(*stayed, trace::EvidenceKind::module_bound_at, finding);
  if (auto plain = made_of_plain_attribute(*stayed, *tensor, outermost, finding)) return plain;
  if (auto registered = buffer_given(*stayed, *tensor, finding)) return registered;
  const Frame* later = made_later(*stayed, *tensor, outermost);
  const bool by_method = later != nullptr && is_method_called_on(*later, *outermost, *stayed);
  const bool anew = by_method || made_anew(*stayed, outermost);
  if (anew && is_changeable(stayed->lineage.back().at, finding)) return made_by_method(*stayed, *tensor, finding);
  if (auto by_parameters = left_by_parameters(*stayed, *tensor, finding)) return by_parameters;
  const Evidence* put = put_into_model(*stayed, *tensor, finding);
  // `setattr()` by a name that is put together leaves no line; the constructor's put what was there before.
  const bool replaced = put != nullptr && later != nullptr && is_constructor(put->at) && !was_made_in(put->at, *stayed);
  if (put != nullptr && !replaced) return put_unmoved(*put, *stayed, *tensor);
  if (auto by_children = explained_by_children(*stayed, *tensor, outermost, finding)) return by_children;
  if (later != nullptr && put_where_made(*stayed, *outermost, finding)) {
    return made_for_moved(stayed->lineage.back(), *outermost, *stayed, *tensor);
  }
  if (later != nullptr) return put_after_move(*later, *outermost, *stayed, *tensor);
  const Evidence* bound = is_put_apart(*stayed, *tensor) ? nullptr : outermost;
  if (auto below = made_below_move(*stayed, *tensor, finding)) return below;
  if (auto beside = made_beside_told(*stayed, *tensor, finding)) return beside;
  if (auto into = put_into_container(*stayed, *tensor, outermost, finding)) return into;
  if (auto kept = given_to_keeper(*stayed, *tensor, bound, finding)) return kept;
  if (auto taken = made_and_kept(*stayed, *tensor, bound, finding)) return taken;
  const LineageStep* birth = birth_of(*stayed);
  if (is_put_into_spread(*stayed, finding)) return made_for_spread(stayed->lineage.back(), *stayed, *tensor);
  const bool made = birth != nullptr && is_changeable(birth->at, finding);
  if (made && came_later(*stayed, bound)) {
    if (auto built = built_for_moved(*birth, *bound, *stayed, *tensor, finding)) return built;
    return made_for_moved(*birth, *bound, *stayed, *tensor);
  }
  if (auto own = made_by_own_class(*stayed, *tensor, bound, finding)) return own;
  const bool known = bound != nullptr || made;
  const Frame& place = bound != nullptr ? bound->at : made ? birth->at : *finding.where;
  Fix fix{place.file, place.line,
          "Move the module that owns " + mention(*stayed) + " with `.to('" + tensor->device +
              "')`; if it belongs to a larger module, make it a part of that one before that one is moved."};
  if (!known) return Explanation{std::nullopt, std::move(fix)};
  if (bound != nullptr && !(made && same_line(birth->at, place))) {
    const std::string where = made ? " made in " + short_place(birth->at) + "," : "";
    return Explanation{
        cause_at(place, *stayed,
                 mention_first(*stayed) + " is a " + std::string(name_of(stayed->is)) + " of `" + bound->text + "`," +
                     where + " on the CPU. Nothing has moved `" + bound->text + "`, which gets its value here, since."),
        std::move(fix)};
  }
  RootCause cause = cause_at(place, *stayed,
                             mention_first(*stayed) + " is a " + std::string(name_of(stayed->is)) +
                                 " made in this line, on the CPU. Nothing has moved its module since.");
  return Explanation{std::move(cause), std::move(fix)};
}

}  // namespace devsan::report::why

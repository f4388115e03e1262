// An operator reads one of its arguments on the host, whatever device it works on: lengths of sequences, where to
// split. So does NumPy, all that it is given. What is to be pinned is memory of the host, too.
#include <algorithm>
#include <array>
#include <string_view>

#include "report/call_text.h"
#include "report/frames.h"
#include "report/operands.h"
#include "report/statement_lines.h"
#include "report/statement_text.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"
#include "trace/odd_operand.h"
#include "trace/words.h"

namespace devsan::report::why {
namespace {

bool is_for_numpy(const Finding& finding) {
  return trace::refused_by_numpy(finding.message);
}

// `tree.update(indices, errors.cpu().numpy())`: the call that gave it brings what it gives beside it.
const Evidence* given_beside_brought(const Operand& odd, const Finding& finding) {
  for (const Evidence& given : odd.evidence) {
    if (given.kind != trace::EvidenceKind::given_at || !is_changeable(given.at, finding)) continue;
    const std::string source = call_at(given.at);
    const auto call = split_call(source);
    if (!call || trace::brings_to_host(given.text)) continue;
    if (std::ranges::any_of(call->arguments, [](const ArgumentText& one) { return trace::brings_to_host(one.text); })) {
      return &given;
    }
  }
  return nullptr;
}

// The outermost of the calls that gave it to functions that hand it to NumPy, and know no tensors.
const Evidence* given_to_arrays(const Operand& odd, const Finding& finding) {
  const Evidence* outermost = nullptr;
  if (!is_for_numpy(finding) || finding.where->statement().find(".numpy(") != std::string::npos) return nullptr;
  for (const Evidence& given : odd.evidence) {
    if (given.kind == trace::EvidenceKind::given_at && is_changeable(given.at, finding)) outermost = &given;
  }
  return outermost;
}

// `np.sum(outputs, 0)` in a module's own forward(): what NumPy makes of what the module computes cannot be
// differentiated, so no call that led there is to blame. `np.asarray(x)` wants an array, and is told of as all others.
bool computes_with_numpy(const Finding& finding) {
  if (!is_for_numpy(finding) || !finding.where->function.ends_with(".forward")) return false;
  const std::string_view line = finding.where->statement();
  const auto calls = [line](std::string_view name) { return line.find(name) != line.npos; };
  constexpr std::array<std::string_view, 3> kConversions = {"array(", "asarray(", ".numpy("};
  return (calls("np.") || calls("numpy.")) && std::ranges::none_of(kConversions, calls);
}

Explanation not_for_numpy(const Operand& odd, const Finding& finding) {
  const Frame& line = *finding.where;
  return {cause_at(line, odd,
                   "This line gives NumPy " + mention(odd) + ", which is on " + spoken_device(odd.device) +
                       ". NumPy reads the memory of the host, and nothing that it computes is differentiated."),
          Fix{line.file, line.line,
              "Use the function of torch that does the same, and leave the values where they are: of a list, "
              "`torch.stack()` makes one tensor."}};
}

// `stats = [loss.item(), accuracy(out, y)]`: the line that collects it brings some of what it collects, and not this.
const Evidence* collected_beside_brought(const Operand& odd, const Finding& finding) {
  const Evidence* bound = place_of(odd, trace::EvidenceKind::bound_at, finding);
  if (bound == nullptr || odd.lineage.empty() || !same_line(odd.lineage.front().at, bound->at)) return nullptr;
  const auto assigned = split_assignment(bound->at.statement());
  const auto parts = assigned ? split_display(assigned->value) : std::nullopt;
  return parts && std::ranges::any_of(*parts, trace::brings_to_host) ? bound : nullptr;
}

// Where the failing function computed what an operator reads, or a call in the failing line did; what NumPy reads is
// brought over where it is converted.
const Frame* computed_at(const Operand& odd, const Finding& finding) {
  if (is_for_numpy(finding)) return nullptr;
  for (const LineageStep& step : odd.lineage) {
    if (made_in_failing_call(step, finding) || !is_changeable(step.at, finding)) continue;
    const bool here = same_function(step.at, *finding.where);
    return here || odd.is == trace::NameKind::temporary ? &step.at : nullptr;
  }
  return nullptr;
}

// A function that has returned computed one number, and handed it to what keeps such for NumPy.
const Evidence* handed_over(const Operand& odd, const Finding& finding) {
  const Evidence* kept = place_of(odd, trace::EvidenceKind::given_to_keep_at, finding);
  if (is_for_numpy(finding) && kept != nullptr && odd.is_scalar() && !same_function(kept->at, *finding.where))
    return kept;
  const Evidence* used = place_of(odd, trace::EvidenceKind::used_once_at, finding);
  if (!is_for_numpy(finding) || !odd.is_scalar() || used == nullptr || is_running(used->at, finding)) return nullptr;
  // What a later function has made of the number that this one handed on is another one.
  if (odd.lineage.empty() || !same_function(odd.lineage.front().at, used->at)) return nullptr;
  return !statement_of(used->at.statement()).starts_with("return ") ? used : nullptr;
}

// `outputs.append(model(x))` for `np.concatenate(outputs)`: what NumPy takes as a whole can only be brought over one by
// one, where it is put there.
const Evidence* put_for_numpy(const Operand& odd, const Finding& finding) {
  const Evidence* put = place_of(odd, trace::EvidenceKind::entry_put_at, finding);
  if (!is_for_numpy(finding) || put == nullptr || same_line(put->at, *finding.where)) return nullptr;
  const bool entry = odd.name.ends_with(']');
  const std::string container = odd.name.substr(0, odd.name.rfind('['));
  std::string line = finding.where->statement();
  std::ranges::replace(line, '"', '\'');  // as names are put together
  for (std::size_t at = find_name(line, container); entry && at != line.npos; at = find_name(line, container, at + 1)) {
    if (!std::string_view(line).substr(at + container.size()).starts_with('[')) return put;
  }
  return nullptr;
}

// A predictor that takes images of the host hands out features of the accelerator, to whoever works with NumPy.
std::optional<Explanation> returned_to_host(const Operand& odd, const Finding& finding) {
  const Evidence* returned = place_of(odd, trace::EvidenceKind::returned_at, finding);
  if (!is_for_numpy(finding) || returned == nullptr) return std::nullopt;
  return Explanation{
      cause_at(returned->at, odd,
               "`" + returned->at.function + "` brings `" + returned->text + "` from the host to " +
                   spoken_device(odd.device) + ", and returns in this line what it makes of that as it is. " +
                   short_place(*finding.where) + " gives " + mention(odd) +
                   " to NumPy, which reads the memory of the host."),
      Fix{returned->at.file, returned->at.line,
          "Bring the result back to the host in this line, with `.cpu()`; or where it is used, in " +
              short_place(*finding.where) + "."}};
}

// `costs = torch.zeros(n)`, for a function that fills arrays, below a default device: a line that names no device made
// it on the accelerator, and nothing was computed there.
std::optional<Explanation> made_by_default(const Operand& odd, const Finding& finding) {
  const Evidence* set = evidence_of(odd, trace::EvidenceKind::default_device_at);
  const LineageStep* made = made_of_no_device(odd);
  const bool alone = made != nullptr && made == &odd.lineage.front() && !same_line(made->at, *finding.where);
  if (!is_for_numpy(finding) || set == nullptr || !alone || !is_changeable(made->at, finding)) return std::nullopt;
  const std::string edit = with_argument(call_at(made->at), "device='cpu'");
  return Explanation{
      cause_at(made->at, odd,
               mention_first(odd) +
                   " is made here for what works on arrays of the host, and names no device: it is on " +
                   spoken_device(odd.device) + ", the default device that " + short_place(set->at) + " sets."),
      Fix{made->at.file, made->at.line,
          "Make it on the host: " + (edit.empty() ? "with `device='cpu'`." : "`" + edit + "`.")}};
}

bool is_for_pinning(const Finding& finding) {
  return finding.message.find(trace::kPinningRefused) != std::string::npos;
}

// A loader that is told to pin its batches gets them from a dataset or a function that moves them already.
Explanation not_to_be_pinned(const Operand& odd, const Finding& finding) {
  const LineageStep* arrival = arrival_of(odd);
  const bool known = arrival != nullptr && is_changeable(arrival->at, finding);
  const Frame& place = known ? arrival->at : *finding.where;
  const std::string device = spoken_device(odd.device);
  return {
      cause_at(place, odd,
               mention_first(odd) + " is to be pinned, as memory of the host can be, and is on " + device +
                   (known ? " already: this line puts it there." : " already.")),
      Fix{place.file, place.line,
          known ? "Leave it on the CPU here, and move it when it was pinned, with `non_blocking=True`; or do not pin "
                  "it: `pin_memory=False` for a `DataLoader`."
                : "Do not pin it: `pin_memory=False` for a `DataLoader`."}};
}

}  // namespace

std::optional<Explanation> wanted_on_host(const Finding& finding) {
  const Operand* odd = first_odd(finding.operands);
  if (odd == nullptr || !finding.where || !on_accelerator(*odd) || !trace::wants_host(finding.message)) {
    return std::nullopt;
  }
  if (is_for_pinning(finding)) return not_to_be_pinned(*odd, finding);
  if (computes_with_numpy(finding)) return not_for_numpy(*odd, finding);
  if (auto returned = returned_to_host(*odd, finding)) return returned;
  if (auto made = made_by_default(*odd, finding)) return made;
  const std::string device = spoken_device(odd->device);
  const Evidence* collected = collected_beside_brought(*odd, finding);
  const Evidence* given = collected == nullptr ? given_beside_brought(*odd, finding) : nullptr;
  std::string why = is_for_numpy(finding)
                        ? mention_first(*odd) + " is on " + device + ", and NumPy reads the memory of the host."
                        : "`" + odd->arg + "` is read on the host, and has to be on the CPU. " + mention_first(*odd) +
                              " is on " + device + ".";
  if (given != nullptr) why += " This call gives `" + given->text + "` as it is, and brings what it gives beside it.";
  if (collected != nullptr) why += " This line collects it as it is, and brings what it collects beside it.";
  // A number that a function has put into a dictionary, whatever happens to that.
  const Evidence* number = handed_over(*odd, finding);
  const bool reported = number != nullptr && stores_entry(number->at.statement());
  if (given == nullptr && collected == nullptr && !reported) given = given_to_arrays(*odd, finding);
  const bool untold = given == nullptr && collected == nullptr;
  const Evidence* put = untold ? put_for_numpy(*odd, finding) : nullptr;
  if (put != nullptr) why += " `" + put->text + "`, which is given to it as a whole, gets it here.";
  const Evidence* handed = untold && put == nullptr ? number : nullptr;
  if (handed != nullptr) {
    const bool by_method = handed->kind == trace::EvidenceKind::given_to_keep_at;
    why += by_method ? " This call of `" + handed->text + "` has it kept as it is."
                     : " This line hands `" + handed->text + "` on as it is.";
  }
  const Frame* computed = collected != nullptr ? &collected->at
                          : put != nullptr     ? &put->at
                          : handed != nullptr  ? &handed->at
                                               : computed_at(*odd, finding);
  const Frame place = given != nullptr      ? line_of_argument(given->at, given->text)
                      : computed != nullptr ? *computed
                                            : *finding.where;
  const std::string what = given != nullptr ? "`" + given->text + "`" : mention(*odd);
  std::string where = ", in this line";
  if (!same_line(place, *finding.where)) where += " or where it is used, in " + short_place(*finding.where);
  return Explanation{cause_at(place, *odd, std::move(why)),
                     Fix{place.file, place.line,
                         "Bring " + what + " to the host with `.cpu()`" + where +
                             "; the host waits for the device there, so once for all that is needed of it is best."}};
}

}  // namespace devsan::report::why

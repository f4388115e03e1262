// A generator makes numbers on its own device only. `torch.Generator()` is on the CPU unless it is told otherwise.
#include "report/frames.h"
#include "report/operands.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {

namespace {

// A shuffling DataLoader makes a generator for the CPU, and draws on the default device. `moved`: a statement by which
// the program brings something to its device; empty where none does.
Explanation met_default_device(const Evidence& set, const Operand& odd, const std::string& wanted,
                               const std::string& moved) {
  const std::string edit = moved.empty() ? "Set it for the block that needs it alone"
                                         : "Leave it out, where all is moved as in `" + moved +
                                               "`, or set it for the block that needs it alone";
  return {cause_at(set.at, odd,
                   "This line makes " + wanted + " the default device. Whoever draws there with a generator for " +
                       spoken_device(odd.device) + ", as a shuffling `DataLoader` does, is refused."),
          Fix{set.at.file, set.at.line,
              edit + ": `with torch.device('" + wanted +
                  "'):`; or give the loader a generator: `generator=torch.Generator(device='" + wanted + "')`."}};
}

// A default device that a script sets for all of it is meant: then the loader is to follow.
Explanation made_by_loader(const Evidence& loader, const Evidence& set, const Operand& odd, const std::string& wanted) {
  const std::string edit = with_argument(call_at(loader.at), "generator=torch.Generator(device='" + wanted + "')");
  return {
      cause_at(loader.at, odd,
               "A `DataLoader` that shuffles makes a generator for the CPU, unless it is given one, and draws on the "
               "default device: " +
                   wanted + ", as " + short_place(set.at) + " says."),
      Fix{loader.at.file, loader.at.line,
          "Give it a generator: `" + (edit.empty() ? "generator=torch.Generator(device='" + wanted + "')" : edit) +
              "`."}};
}

// `torch.rand(n, generator=generator)`: the generator was given its device, and this line, which leaves out its own,
// would have the numbers on the CPU. A library that draws, as a loader does, wants them there.
std::optional<Explanation> drawn_without_device(const Operand& odd, const Operand* tensor, const Finding& finding) {
  const bool numbers = tensor == nullptr || tensor->device_argument;
  const std::string call = call_at(*finding.where);
  if (!on_accelerator(odd) || !numbers || !is_changeable(*finding.where, finding)) return std::nullopt;
  // What a function of torch's own draws, as `random_split()` does, this line cannot tell where to be.
  if (!finding.stack.empty() && !same_line(finding.stack.front(), *finding.where)) return std::nullopt;
  if (call.find("generator=") == call.npos || names_device(*finding.where)) return std::nullopt;
  const std::string edit = with_argument(call, "device=" + device_expression(odd));
  return Explanation{cause_at(*finding.where, odd,
                              mention_first(odd) + " is on " + odd.device +
                                  ", and this line draws from it without a device: the numbers would be on " +
                                  spoken_device(tensor != nullptr ? tensor->device : "cpu") + "."),
                     Fix{finding.where->file, finding.where->line,
                         "Draw where the generator is: `" + edit +
                             "`; or make the generator where the numbers would be, if they are wanted there."}};
}

// `weights = scores.softmax(-1).to(generator.device)` in another branch: the numbers are to go to the generator, and
// this branch leaves them where they are.
std::optional<Explanation> left_by_branch(const Operand& odd, const Operand& tensor, const Finding& finding) {
  const Evidence* other = place_of(tensor, trace::EvidenceKind::branch_moves_at, finding);
  const LineageStep* left = other != nullptr ? bound_in_function(tensor, other->at) : nullptr;
  if (left == nullptr || !is_changeable(left->at, finding)) return std::nullopt;
  const std::string_view moves = other->at.statement();
  const bool to_generator = moves.find("generator") != moves.npos || moves.find(odd.name + ".device") != moves.npos ||
                            (odd.on_cpu() && moves.find(".cpu()") != moves.npos);
  if (!to_generator) return std::nullopt;
  return Explanation{cause_at(left->at, tensor,
                              "This line leaves `" + other->text + "` on " + spoken_device(tensor.device) +
                                  ". Another branch, in " + short_place(other->at) +
                                  ", takes it to where the generator is, on " + spoken_device(odd.device) + "."),
                     Fix{left->at.file, left->at.line,
                         "Move it to the generator's device in this line, too, and what is drawn back to " +
                             spoken_device(tensor.device) + "."}};
}

// `self.rng = seed` keeps what another line has made: of the two that one, where it is known.
const Evidence* stored_or_made(const Operand& odd, const Finding& finding) {
  const Evidence* stored = place_of(odd, trace::EvidenceKind::attribute_set_at, finding);
  const Evidence* made = place_of(odd, trace::EvidenceKind::generator_made_at, finding);
  const bool handed = stored != nullptr && stored->at.statement().find('(') == std::string::npos;
  return stored == nullptr || (handed && made != nullptr) ? made : stored;
}

// `if generator is None: generator = torch.Generator(device=device)`: made for the device of whoever asked first.
std::optional<Explanation> kept_for_first(const Operand& odd, const std::string& wanted, const Finding& finding) {
  const Evidence* guard = place_of(odd, trace::EvidenceKind::cache_guard_at, finding);
  const Evidence* made = evidence_of(odd, trace::EvidenceKind::generator_made_at);
  if (guard == nullptr || made == nullptr) return std::nullopt;
  return Explanation{
      cause_at(guard->at, odd,
               mention_first(odd) + " was made in " + short_place(made->at) + " for " + spoken_device(odd.device) +
                   ", which was asked for then. This condition keeps it also for who asks for " +
                   spoken_device(wanted) + "."),
      Fix{guard->at.file, guard->at.line,
          "Make a new one here for another device, too: `or " + (odd.name.empty() ? "generator" : odd.name) +
              ".device != …`; or keep one for each device."}};
}

// `torch.randn(n, generator=generator, device=image.device)`: the numbers are to go with a value that was left on the
// host.
std::optional<Explanation> drawn_for_unmoved(const Operand& odd, const std::string& wanted, const Finding& finding) {
  const Evidence* asked = place_of(odd, trace::EvidenceKind::device_asked_of_at, finding);
  if (asked == nullptr || !on_accelerator(odd) || wanted != "cpu") return std::nullopt;
  const std::string device = same_function(asked->at, *finding.where) ? device_expression(odd) : "'" + odd.device + "'";
  const std::string edit = assigned_after_move(asked->at, device);
  return Explanation{cause_at(asked->at, odd,
                              "`" + asked->text + "` gets its value here, on the CPU, and " +
                                  short_place(*finding.where) + " draws numbers to go with it. " + mention_first(odd) +
                                  " is on " + odd.device + ", where the work is done."),
                     Fix{asked->at.file, asked->at.line,
                         "Bring it there in this line" + (edit.empty() ? "" : ": `" + edit + "`") +
                             "; or have the numbers on " + odd.device + ", and move them."}};
}

}  // namespace

std::optional<Explanation> generator_elsewhere(const Finding& finding) {
  const Operand* odd = first_odd(finding.operands);
  if (odd == nullptr || !odd->generator || !finding.where) return std::nullopt;
  const Operand* tensor = counterpart_of(*odd, finding.operands);
  if (auto drawn = drawn_without_device(*odd, tensor, finding)) return drawn;
  if (tensor != nullptr) {
    if (auto left = left_by_branch(*odd, *tensor, finding)) return left;
  }
  const std::string wanted = tensor == nullptr ? "cpu" : tensor->device;
  if (auto kept = kept_for_first(*odd, wanted, finding)) return kept;
  if (auto unmoved = drawn_for_unmoved(*odd, wanted, finding)) return unmoved;
  const Evidence* made = place_of(*odd, trace::EvidenceKind::generator_yielded_at, finding);
  if (made == nullptr) made = place_of(*odd, trace::EvidenceKind::bound_at, finding);
  if (made == nullptr) made = stored_or_made(*odd, finding);
  const Evidence* set = place_of(*odd, trace::EvidenceKind::default_device_at, finding);
  const Evidence* loader = place_of(*odd, trace::EvidenceKind::loader_made_at, finding);
  // One that a function sets beside its loader is meant for what that function does, as one of a script is; not where
  // the program moves things itself.
  const bool meant = set != nullptr && loader != nullptr &&
                     (is_beginning(set->at) || same_function(set->at, loader->at)) && loader->text.empty();
  const std::string moved = loader != nullptr ? loader->text : "";
  if (made == nullptr && meant) {
    return made_by_loader(*loader, *set, *odd, wanted);
  }
  if (made == nullptr && set != nullptr) return met_default_device(*set, *odd, wanted, moved);
  const Frame& line = made != nullptr ? made->at : *finding.where;
  Fix fix{line.file, line.line,
          "Make the generator where the numbers are wanted, with `torch.Generator(device='" + wanted +
              "')`; or, to have the same numbers on every device, draw them on " + spoken_device(odd->device) +
              " with this generator and move the result with `.to('" + wanted + "')`."};
  if (made == nullptr) return Explanation{std::nullopt, std::move(fix)};
  const bool only_one = made->kind == trace::EvidenceKind::generator_made_at;
  const std::string what =
      only_one && !made->text.empty() ? "This line takes `torch." + made->text + "`, which is a generator on "
      : only_one ? "No other line of the program makes generators, so " + mention(*odd) + " comes from here: one on "
                 : mention_first(*odd) + " gets its value here: a generator on ";
  RootCause cause =
      cause_at(made->at, *odd,
               what + spoken_device(odd->device) + ", while the numbers are wanted on " + spoken_device(wanted) + ".");
  return Explanation{std::move(cause), std::move(fix)};
}

}  // namespace devsan::report::why

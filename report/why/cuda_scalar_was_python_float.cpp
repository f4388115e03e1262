// A norm, a sum or a maximum is one number. Code that works on CPU tensors with it was written when that number was a
// Python float, or a CPU scalar, which every operator takes; once its `.item()` is dropped, the number stays on the
// accelerator as a 0-dim tensor, and everything computed from it does, too. PyTorch's exception for scalars is one-way:
// a CPU scalar may join tensors on an accelerator, a scalar there may not join CPU tensors.
//
// The line to change is the newest reduction in the number's history: there it became one number. Without a reduction
// it is where the value came to the accelerator.
#include <algorithm>
#include <array>
#include <string_view>

#include "report/call_text.h"
#include "report/frames.h"
#include "report/operands.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"
#include "trace/odd_operand.h"

namespace devsan::report::why {
namespace {

constexpr std::array<std::string_view, 24> kReductions = {"norm",
                                                          "linalg_norm",
                                                          "linalg_vector_norm",
                                                          "linalg_matrix_norm",
                                                          "frobenius_norm",
                                                          "nuclear_norm",
                                                          "sum",
                                                          "nansum",
                                                          "mean",
                                                          "nanmean",
                                                          "prod",
                                                          "max",
                                                          "min",
                                                          "amax",
                                                          "amin",
                                                          "median",
                                                          "std",
                                                          "var",
                                                          "dot",
                                                          "vdot",
                                                          "logsumexp",
                                                          "trace",
                                                          "dist",
                                                          "_foreach_norm"};

constexpr std::array<std::string_view, 10> kComparisons = {"gt", "ge",  "lt",  "le",      "eq",
                                                           "ne", "max", "min", "maximum", "minimum"};

bool is_reduction(const LineageStep& step) {
  return std::ranges::find(kReductions, trace::operator_base_name(step.op)) != kReductions.end();
}

const LineageStep* where_it_became_a_number(const Operand& scalar) {
  const auto known = [](const LineageStep& step) { return !step.at.file.empty(); };
  for (const LineageStep& step : scalar.lineage) {
    if (step.device != scalar.device) break;  // older than the value's arrival on this device
    if (known(step) && is_reduction(step)) return &step;
    if (step.how == trace::How::derived && begins_value(step)) return known(step) ? &step : nullptr;
  }
  for (const LineageStep& step : scalar.lineage) {
    if (known(step) && step.device == scalar.device && step.how != trace::How::derived) return &step;
  }
  return nullptr;
}

// The newest step of its history is a copy to its device.
bool was_put_there(const Operand& operand) {
  return !operand.lineage.empty() && operand.lineage.front().how == trace::How::moved;
}

// The program took the others to the CPU itself, so that is where it means to compute.
bool others_were_brought_to_cpu(const Operand& scalar, const Finding& finding) {
  return std::ranges::all_of(finding.operands, [&](const Operand& operand) {
    return &operand == &scalar || (operand.on_cpu() && newest_move_of(operand) != nullptr);
  });
}

// Nothing else of the program is where it is: a function has brought it there, as a collective does.
bool was_taken_from_host(const Operand& operand) {
  const LineageStep* move = newest_move_of(operand);
  return evidence_of(operand, trace::EvidenceKind::alone_on_device) != nullptr && move != nullptr &&
         !moves_module(*move);
}

// `if accuracy > best`: what a function has made to compare its numbers with, and nobody has moved since, is a record
// that is kept on the host, and takes numbers of Python as well.
bool is_compared_with_record(const Operand& scalar, const Finding& finding) {
  const std::string_view op = trace::operator_base_name(finding.op);
  const Operand* record = first_odd(finding.operands);
  if (std::ranges::find(kComparisons, op) == kComparisons.end() || record == nullptr || !record->on_cpu()) return false;
  const bool own = record->is == trace::NameKind::local && record->lineage.size() == 1 && finding.where &&
                   same_function(record->lineage.front().at, *finding.where);
  return own && std::ranges::any_of(scalar.lineage, is_reduction) &&
         evidence_of(scalar, trace::EvidenceKind::handed_back_at) != nullptr;
}

const Operand* stray_scalar(const Finding& finding) {
  for (const Operand& operand : finding.operands) {
    const bool odd = operand.odd || was_taken_from_host(operand) || is_compared_with_record(operand, finding) ||
                     (!was_put_there(operand) && others_were_brought_to_cpu(operand, finding));
    if (odd && operand.is_scalar() && !is_weight(operand) && on_accelerator(operand)) return &operand;
  }
  return nullptr;
}

// `inv_scale = self.scale.reciprocal()`: an object keeps the number for what works on the accelerator, and the failing
// function makes its own of it. Null where it does not.
const LineageStep* taken_from_kept(const Operand& scalar, const LineageStep& number, const Finding& finding) {
  const Evidence* bound = place_of(scalar, trace::EvidenceKind::bound_at, finding);
  const Evidence* source = evidence_of(scalar, trace::EvidenceKind::computed_from);
  if (bound == nullptr || source == nullptr || !source->text.starts_with("self.")) return nullptr;
  if (same_function(number.at, *finding.where) || !same_function(bound->at, *finding.where)) return nullptr;
  const bool takes = find_name(bound->at.statement(), source->text) != std::string_view::npos;
  const LineageStep& newest = scalar.lineage.front();
  return takes && newest.how == trace::How::derived && same_line(newest.at, bound->at) ? &newest : nullptr;
}

// `self.scale = model.log_scale.exp()`: where the number comes to the accelerator, a whole module does. The line that
// keeps what it computes from a weight is the one where it could be a number of the host. Null where it is not known.
const LineageStep* kept_from_weight(const Operand& scalar, const LineageStep& move, const Finding& finding) {
  // What is an entry of what it keeps may have been made one of many.
  if (!moves_module(move) || begins_with_entry(scalar.name)) return nullptr;
  for (const auto kind : {trace::EvidenceKind::attribute_set_at, trace::EvidenceKind::bound_at}) {
    const Evidence* kept = place_of(scalar, kind, finding);
    const auto is_there = [&](const LineageStep& step) {
      return step.how == trace::How::derived && kept != nullptr && same_line(step.at, kept->at);
    };
    const auto newer = std::ranges::subrange(scalar.lineage.data(), &move);
    const auto found = std::ranges::find_if(newer, is_there);
    if (found != newer.end()) return found;
  }
  return nullptr;
}

// `mean(average, weight.to(average.device), count)`: the call that gives the number brings what comes with it to the
// host.
std::optional<Explanation> given_beside_moved(const Operand& scalar, const Operand& tensor, const Finding& finding) {
  const LineageStep* move = newest_move_of(tensor);
  if (move == nullptr || moves_module(*move) || same_function(move->at, *finding.where)) return std::nullopt;
  if (!is_running(move->at, finding) || !is_changeable(move->at, finding)) return std::nullopt;
  const std::string& call = move->at.statement();
  const auto given = std::ranges::find_if(scalar.evidence, [&](const Evidence& one) {
    const bool names = one.kind == trace::EvidenceKind::bound_at || one.kind == trace::EvidenceKind::computed_from ||
                       one.kind == trace::EvidenceKind::given_at;
    return names && !one.text.empty() && find_name(call, one.text) != std::string_view::npos;
  });
  if (given == scalar.evidence.end()) return std::nullopt;
  return Explanation{
      cause_at(move->at, scalar,
               "This call brings what it gives to the CPU, and beside it `" + given->text + "` as it is, a number on " +
                   scalar.device + ". PyTorch takes no scalar on an accelerator into operators on CPU tensors."),
      Fix{move->at.file, move->at.line,
          "Bring the number along: `" + given->text + ".to('cpu')`, or `" + given->text + ".item()`."}};
}

std::string describe(const Operand& scalar, const LineageStep& step) {
  std::string text = step.how == trace::How::derived ? "This line makes one number and leaves it on " + scalar.device
                     : step.how == trace::How::moved ? "This line puts the value on " + scalar.device
                                                     : "The value begins on " + scalar.device + " in this line";
  text += "; what is computed from it stays there, down to " + mention(scalar) + ". PyTorch takes a CPU scalar into " +
          "operators on " + scalar.device + ", but no scalar on " + scalar.device + " into operators on CPU tensors.";
  return text;
}

}  // namespace

std::optional<Explanation> cuda_scalar_was_python_float(const Finding& finding) {
  const Operand* scalar = stray_scalar(finding);
  if (scalar == nullptr || !finding.where) return std::nullopt;
  const Operand* tensor = scalar->odd ? counterpart_of(*scalar, finding.operands) : first_odd(finding.operands);
  if (tensor == nullptr || !tensor->on_cpu() || !tensor->shape) return std::nullopt;
  // `self.highest.lerp_(values.max(), 0.01)`: a buffer should be where its module is, and that where the numbers are.
  if (is_weight(*tensor) && !was_moved(*tensor) && is_written_to(*tensor, finding)) return std::nullopt;
  const LineageStep* arrival = arrival_of(*tensor);
  if (arrival != nullptr && is_load(*arrival)) return std::nullopt;  // it was computed there before it was saved

  if (auto beside = given_beside_moved(*scalar, *tensor, finding)) return beside;

  const std::string here = "`" + move_call(*scalar, *tensor) + "`";
  const LineageStep* step = where_it_became_a_number(*scalar);
  if (step == nullptr) {
    return Explanation{std::nullopt, Fix{finding.where->file, finding.where->line,
                                         "Take the number to the host before it meets the CPU tensor: call `.item()` "
                                         "on " +
                                             mention(*scalar) + ", or move it with " + here + "."}};
  }
  if (const LineageStep* taken = taken_from_kept(*scalar, *step, finding)) step = taken;
  if (const LineageStep* kept = kept_from_weight(*scalar, *step, finding)) step = kept;
  RootCause cause{step->at.file, step->at.line, step->at.function, spoken_name(*scalar), describe(*scalar, *step)};
  // A model cannot be asked for its number.
  const std::string item = moves_module(*step) ? "Take the number to the host where it is taken from the model, with "
                                                 "`.item()`."
                                               : "Take the number to the host where it is made: call `.item()` on the "
                                                 "result of this line.";
  Fix fix{step->at.file, step->at.line,
          item + " Or leave it on " + scalar->device + " and move what meets the CPU tensor, in " +
              short_place(*finding.where) + ": " + here + "."};
  return Explanation{std::move(cause), std::move(fix)};
}

}  // namespace devsan::report::why

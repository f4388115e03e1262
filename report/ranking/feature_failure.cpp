#include <algorithm>

#include "report/program/positions.h"
#include "report/ranking/context.h"

namespace devsan::report::ranking {

using program::Kind;
using program::Node;

namespace {

bool is_part(const Operand* operand) {
  return operand != nullptr && (operand->is == trace::NameKind::parameter || operand->is == trace::NameKind::buffer);
}

bool was_moved(const LineageStep* step) {
  return step != nullptr && step->how == trace::How::moved;
}

void set_maker(const Context& context, Candidate& candidate) {
  const auto set = [&](Feature feature, bool value) { candidate[feature] = value ? 1 : 0; };
  const LineageStep* step = context.odd_step;
  if (step == nullptr) return;
  const auto same_line = [&](const Frame& frame) { return frame.file == step->at.file && frame.line == step->at.line; };
  set(Feature::odd_made_where_failing, context.finding.where && same_line(*context.finding.where));
  set(Feature::odd_made_on_stack, std::ranges::any_of(context.finding.stack, same_line));
  const slice::FileIndex* index = context.code.file(step->at.file);
  if (index == nullptr) return;
  const Traits said = traits_of_line(index->file(), step->at.line);
  set(Feature::odd_made_by_layer, said.makes_layer);
  set(Feature::odd_told_device, said.speaks_of_device || said.moves || said.names_accelerator);
  const Node function = context.code.function_at(step->at);
  if (!function) return;
  const Surroundings& around = context.around(function);
  set(Feature::odd_made_in_module, around.of_module);
  set(Feature::odd_made_with_tensor, around.has_tensor);
  set(Feature::odd_made_from_data, around.reads_data);
  set(Feature::odd_made_in_constructor, slice::name_of_function(function) == "__init__");
  set(Feature::odd_made_at_module_level, function.is(Kind::Module));
  const Node owner = program::class_of(function);
  set(Feature::odd_made_in_failing_class,
      owner && context.failing_function && owner == program::class_of(context.failing_function));
}

}  // namespace

void set_failure(const Context& context, Candidate& candidate) {
  const auto set = [&](Feature feature, bool value) { candidate[feature] = value ? 1 : 0; };
  if (context.odd == nullptr) return;
  const trace::NameKind is = context.odd->is;
  set(Feature::odd_on_host, context.odd->on_cpu());
  set(Feature::odd_is_parameter, is_part(context.odd));
  set(Feature::odd_is_buffer, is == trace::NameKind::buffer);
  set(Feature::odd_is_attribute, is == trace::NameKind::attribute);
  set(Feature::odd_is_local, is == trace::NameKind::local);
  set(Feature::odd_is_temporary, is == trace::NameKind::temporary || is == trace::NameKind::unknown);
  set(Feature::odd_was_moved, was_moved(context.odd_step));
  set(Feature::odd_unknown, context.odd_step == nullptr);
  set(Feature::between_accelerators, std::ranges::none_of(context.finding.operands, &Operand::on_cpu));
  set(Feature::other_is_parameter, is_part(context.other));
  set(Feature::other_was_moved, was_moved(context.other_step));
  set(Feature::has_default_device,
      !context.code.calls("set_default_device").empty() || !context.code.calls("set_default_tensor_type").empty());
  set(Feature::fails_forward, context.finding.phase == trace::Phase::forward);
  set(Feature::odd_kept_across_calls, context.odd_kept);
  set(Feature::other_kept_across_calls, context.other_kept);
  set_maker(context, candidate);
}

}  // namespace devsan::report::ranking

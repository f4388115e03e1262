// Random numbers: they are drawn on the generator's device, and what was drawn is moved to where it is used.

#include <algorithm>

#include "report/fixes/site.h"
#include "report/fixes/torch_calls.h"
#include "report/program/scopes.h"
#include "report/program/source_file.h"
#include "report/slice/torch_names.h"

namespace devsan::report::fixes {

using program::CallParts;
using program::Edit;
using program::Field;
using program::Kind;
using program::Node;

namespace {

// The call in the failing line that draws with a generator.
CallParts drawing_call(const Site& site) {
  const Node exact = site.code.node_at(*site.finding.where);
  for (const Node within : {exact, site.statement()}) {
    if (!within) continue;
    for (const Node node : within.subtree()) {
      const CallParts call = program::call_parts(node);
      if (call && !program::dotted_name(call.keyword("generator")).empty()) return call;
    }
  }
  return {};
}

// The function may be called without the generator.
bool may_be_none(Node generator) {
  if (!generator.is(Kind::Identifier)) return false;
  const program::Scopes& scopes = generator.file().scopes();
  const program::Scope* binding = scopes.binding(generator.text(), scopes.of(generator));
  const program::Parameter* parameter = binding == nullptr ? nullptr : binding->parameter(generator.text());
  return parameter != nullptr && parameter->default_value.is(Kind::NoneLiteral);
}

std::string device_of_generator(Node generator, const std::string& otherwise) {
  const std::string device = std::string(generator.text()) + ".device";
  return may_be_none(generator) ? device + " if " + std::string(generator.text()) + " is not None else " + otherwise
                                : device;
}

using MaybeEdits = std::optional<std::vector<Edit>>;

// The edit within the call, and behind the call a move to `there`.
MaybeEdits and_back(std::optional<Edit> within, Node call, const std::string& there) {
  if (!within) return std::nullopt;
  return std::vector<Edit>{std::move(*within), {call.end_byte(), call.end_byte(), move_to(there)}};
}

// torch.randn(3, generator=g, device=d)  ->  torch.randn(3, generator=g, device=g.device).to(d)
MaybeEdits in_factory(const CallParts& call, Node generator) {
  const Node device = call.keyword("device");
  if (!device || device_argument_of(call) != "device") return std::nullopt;
  const std::string there(device.text());
  return and_back(program::replace_expression(device, device_of_generator(generator, there)), call.call, there);
}

// torch.empty_like(x).normal_(generator=g)  ->  torch.empty_like(x, device=g.device).normal_(generator=g).to(x.device)
MaybeEdits in_likeness(const CallParts& call, Node generator) {
  const CallParts made = program::call_parts(call.receiver());
  if (!made || !makes_like_another(made) || made.keyword("device")) return std::nullopt;
  const Node model = made.method().starts_with("new_") ? made.receiver()
                     : made.positional.empty()         ? Node()
                                                       : made.positional.front();
  if (program::dotted_name(model).empty()) return std::nullopt;
  const std::string there = std::string(model.text()) + ".device";
  return and_back(program::set_keyword(made.call, "device", device_of_generator(generator, there)), call.call, there);
}

// x.normal_(generator=g)  ->  x.copy_(torch.empty_like(x, device=g.device).normal_(generator=g))
MaybeEdits in_place(const CallParts& call, Node generator) {
  const Node tensor = call.receiver();
  const bool alone = call.call.parent().is(Kind::ExpressionStatement);
  if (!alone || !call.method().ends_with('_') || program::dotted_name(tensor).empty()) return std::nullopt;
  const std::string name(tensor.text());
  const std::string device = device_of_generator(generator, name + ".device");
  const std::string rest(call.call.text().substr(tensor.text().size()));
  const auto edit = program::replace_expression(
      call.call, name + ".copy_(torch.empty_like(" + name + ", device=" + device + ")" + rest + ")");
  return edit ? MaybeEdits({*edit}) : std::nullopt;
}

// torch.bernoulli(p, generator=g)  ->  torch.bernoulli(p.to(g.device), generator=g).to(p.device)
MaybeEdits from_tensor(const CallParts& call, Node generator) {
  const Node tensor = call.positional.empty() ? Node() : call.positional.front();
  if (program::dotted_name(tensor).empty() || slice::makes_tensor(slice::called_name(call.call))) return std::nullopt;
  const std::string there = std::string(tensor.text()) + ".device";
  const auto moved = program::append_to_expression(tensor, move_to(device_of_generator(generator, there)));
  return and_back(moved, call.call, there);
}

}  // namespace

MaybeChange draw_there(const Site& site) {
  const bool drawn = std::ranges::any_of(site.finding.operands, &Operand::generator);
  if (!drawn || !site.finding.where || site.failing_statement() != site.statement()) return {};
  const CallParts call = drawing_call(site);
  const Node generator = call.keyword("generator");
  if (!call || call.has_star || call.has_double_star) return {};
  for (const auto way : {&in_factory, &in_likeness, &in_place, &from_tensor}) {
    auto edits = way(call, generator);
    if (!edits) continue;
    return Change{std::move(*edits), "Draw on the device of " + as_code(generator.text()) + ", and move what is drawn"};
  }
  return {};
}

}  // namespace devsan::report::fixes

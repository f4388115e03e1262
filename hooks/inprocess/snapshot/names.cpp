#include "hooks/inprocess/snapshot/names.h"

#include "hooks/inprocess/bridge/tensor_facts.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/interpreter/frame_marks.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/snapshot/optimizer_state.h"
#include "hooks/inprocess/source/source_files.h"

namespace devsan::hooks {

namespace {

trace::NameKind kind_of(LinkKind kind) {
  switch (kind) {
    case LinkKind::parameter:
      return trace::NameKind::parameter;
    case LinkKind::buffer:
      return trace::NameKind::buffer;
    case LinkKind::local:
    case LinkKind::global:
      return trace::NameKind::local;
    case LinkKind::attribute:
    case LinkKind::child:
    case LinkKind::index:
    case LinkKind::key:
    case LinkKind::member:
    case LinkKind::gradient:
    case LinkKind::closure:
      return trace::NameKind::attribute;
  }
  return trace::NameKind::unknown;
}

// Whether the statement that failed computed the value: then it is called by its expression.
bool is_made_by(const trace::OperandRecord& operand, trace::SiteId site) {
  const trace::Position here = runtime.recorder->site(site).user;
  const trace::Position made = runtime.recorder->site(runtime.recorder->lineage(operand.lineage).site).user;
  return made.file == here.file && made.function == here.function && made.line == here.line;
}

// A variable of torch's own, for what the program has computed in a part of the call that failed: `input` of
// F.linear(), `self` of Tensor.__array__().
bool is_name_of_torch(const ObjectSearch& search, const Sighting& sighting, const trace::OperandRecord& operand,
                      trace::SiteId site) {
  if (!search.is_root(sighting.place)) return false;
  const void* frame = search.place(sighting.place).frame;
  const trace::Position here = runtime.recorder->site(site).user;
  const trace::Position made = runtime.recorder->site(runtime.recorder->lineage(operand.lineage).site).user;
  const bool part = made.column != here.column || made.end_column != here.end_column;
  return part && frame != nullptr && is_torch_code(frame);
}

// Lives as long as `files` has the file.
std::string_view text_of_temporary(const trace::OperandRecord& operand, trace::SiteId site,
                                   SourceFiles& files) noexcept {
  if (operand.lineage == trace::LineageId::none) return {};
  const trace::SiteId maker = runtime.recorder->lineage(operand.lineage).site;
  if (maker == site) return {};  // made inside of what failed, by a kernel or a script
  const trace::Position here = runtime.recorder->site(site).user;
  const trace::Position made = runtime.recorder->site(maker).user;
  return made.file == here.file && made.function == here.function ? files.part(made) : std::string_view();
}

}  // namespace

void give_names(const ObjectSearch& search, std::span<trace::OperandRecord> records,
                std::span<const OperandIdentity> identities, trace::SiteId site) {
  for (std::size_t k = 0; k < records.size(); ++k) {
    const Sighting& sighting = search.sighting(k);
    if (sighting.place == kNoPlace) continue;
    const bool unnamed = sighting.base || is_name_of_torch(search, sighting, records[k], site);
    if (unnamed && is_made_by(records[k], site)) continue;
    const OptimizerState state = optimizer_state(search, identities[k].object);
    if (!sighting.gradient && state.optimizer != nullptr) {
      records[k].name = runtime.recorder->intern_string(state.name);
      records[k].name_kind = trace::NameKind::attribute;
      continue;
    }
    const Place& place = search.place(sighting.place);
    records[k].name =
        runtime.recorder->intern_string(search.path_to(sighting.place) + (sighting.gradient ? ".grad" : ""));
    const bool parameter = !sighting.gradient && type_name(place.object) == "Parameter";
    records[k].name_kind = parameter           ? trace::NameKind::parameter
                           : sighting.gradient ? trace::NameKind::attribute
                                               : kind_of(place.link.kind);
  }
}

void name_temporaries(std::span<trace::OperandRecord> records, trace::SiteId site) noexcept {
  SourceFiles files;
  for (trace::OperandRecord& operand : records) {
    constexpr unsigned kUnnamed = trace::kGenerator | trace::kDeviceArgument | trace::kWrappedNumber;
    if (operand.name != trace::StringId::none || (operand.flags & kUnnamed) != 0) continue;
    operand.name_kind = trace::NameKind::temporary;
    const std::string_view text = text_of_temporary(operand, site, files);
    if (!text.empty()) operand.name = runtime.recorder->intern_string(text);
  }
}

}  // namespace devsan::hooks

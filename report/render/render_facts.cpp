#include "report/render/render_facts.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "report/model/operands.h"
#include "report/render/render_json_parts.h"

namespace devsan::report {
namespace {

template <class Part, class ToJson>
Json list_of(const std::vector<Part>& parts, const ToJson& to_json) {
  Json json = Json::array();
  for (const Part& part : parts) json.push_back(to_json(part));
  return json;
}

Json position_json(const Frame& frame) {
  return {{"file", text_or_null(frame.file)},
          {"line", frame.line},
          {"end_line", frame.end_line},
          {"column", frame.column < 0 ? Json(nullptr) : Json(frame.column)},
          {"end_column", frame.end_column < 0 ? Json(nullptr) : Json(frame.end_column)},
          {"function", text_or_null(frame.function)}};
}

Json positions_json(const std::vector<Frame>& frames) {
  return list_of(frames, position_json);
}

Json frames_json(const std::vector<Frame>& frames) {
  Json json = positions_json(frames);
  for (std::size_t k = 0; k < frames.size(); ++k) {
    json[k]["torch"] = frames[k].torch;
    json[k]["library"] = frames[k].library;
  }
  return json;
}

Json step_json(const LineageStep& step) {
  return {{"how", name_of(step.how)},
          {"op", text_or_null(step.op)},
          {"device", text_or_null(step.device)},
          {"user", position_json(step.at)},
          {"innermost", position_json(step.innermost)},
          {"calls", positions_json(step.calls)}};
}

Json operand_json(const Operand& operand, std::optional<ObjectIndex> object, std::uint32_t storage) {
  Json json = {{"argument", operand.arg},
               {"name", text_or_null(operand.name)},
               {"device", text_or_null(operand.device)},
               {"object", object ? Json(*object) : Json(nullptr)},
               {"storage", storage != 0 ? Json(storage) : Json(nullptr)},
               {"shape", operand.shape ? Json(*operand.shape) : Json(nullptr)},
               {"dtype", text_or_null(operand.dtype)},
               {"odd", operand.odd},
               {"is", name_of(operand.is)}};
  if (operand.generator) json["generator"] = true;
  if (operand.device_argument) json["device_argument"] = true;
  if (operand.number) json["number"] = true;
  json["lineage"] = list_of(operand.lineage, step_json);
  return json;
}

// What an object does not have is left out: there are thousands.
Json object_json(ObjectIndex index, const ObjectFact& object) {
  Json json = {{"id", index}, {"kind", name_of(object.kind)}, {"type", text_or_null(object.type)}};
  if (!object.file.empty()) {
    json["code"] = {{"file", object.file}, {"line", object.line}, {"function", text_or_null(object.function)}};
  }
  if (!object.text.empty()) json["text"] = object.text;
  if (object.number) {
    const bool value = object.kind == trace::ObjectKind::number || object.kind == trace::ObjectKind::boolean;
    json[value ? "value" : object.is_tensor() ? "dimensions" : "entries"] = *object.number;
    if (object.kind == trace::ObjectKind::boolean) json["value"] = *object.number != 0;
  }
  if (!object.device.empty()) json["device"] = object.device;
  if (object.is_tensor()) {
    json["storage"] = object.storage != 0 ? Json(object.storage) : Json(nullptr);
    json["requires_grad"] = object.requires_grad;
    json["leaf"] = object.leaf;
    json["lineage"] = list_of(object.lineage, step_json);
  }
  if (object.operand) json[object.shares_memory ? "shares_memory_with_operand" : "operand"] = *object.operand;
  if (object.cut) json["cut"] = true;
  return json;
}

Json link_json(const LinkFact& link) {
  Json json = {{"from", link.from}, {"kind", name_of(link.kind)}};
  if (!link.name.empty()) json["name"] = link.name;
  if (link.index) json["index"] = *link.index;
  json["to"] = link.to;
  return json;
}

Json variable_json(const VariableFact& variable) {
  return {{"frame", variable.frame ? Json(*variable.frame) : Json(nullptr)},
          {"kind", name_of(variable.kind)},
          {"name", variable.name},
          {"object", variable.object}};
}

Json copy_json(const CopyFact& copy) {
  return {{"kind", name_of(copy.kind)},
          {"storage", copy.storage},
          {"device", text_or_null(copy.device)},
          {"user", position_json(copy.user)},
          {"innermost", position_json(copy.innermost)},
          {"calls", positions_json(copy.calls)}};
}

Json operands_json(const Facts& facts) {
  Json json = Json::array();
  for (std::size_t k = 0; k < facts.operands.size(); ++k) {
    const std::optional<ObjectIndex> object = facts.object_of_operand(k);
    json.push_back(operand_json(facts.operands[k], object, object ? facts.objects[*object].storage : 0));
  }
  return json;
}

Json meeting_json(const Facts& facts) {
  Json json = {{"finding", facts.finding},
               {"kind", name_of(facts.kind)},
               {"pid", facts.pid},
               {"rank", facts.rank ? Json(*facts.rank) : Json(nullptr)},
               {"op", text_or_null(facts.op)},
               {"message", text_or_null(facts.message)},
               {"raised", facts.raised},
               {"phase", name_of(facts.phase)}};
  json["frames"] = frames_json(facts.frames);
  json["forward"] = frames_json(facts.forward);
  json["operands"] = operands_json(facts);
  json["recorded"] = facts.recorded;
  json["cut"] = facts.cut;
  json["microseconds"] = facts.microseconds;
  json["objects"] = Json::array();
  for (std::size_t k = 0; k < facts.objects.size(); ++k) json["objects"].push_back(object_json(k, facts.objects[k]));
  json["links"] = list_of(facts.links, link_json);
  json["variables"] = list_of(facts.variables, variable_json);
  json["copies"] = list_of(facts.copies, copy_json);
  return json;
}

std::string hash_text(std::uint64_t value) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(value));
  return digits;
}

}  // namespace

std::string render_facts(const FactsOfRun& facts, const Sources& sources) {
  Json json = {{"schema", "devsan-facts/1"}};
  json["meetings"] = list_of(facts.meetings, meeting_json);
  json["sources"] = Json::object();
  json["files"] = Json::object();
  for (const auto& [file, source] : sources) {
    if (source.text) json["sources"][file] = *source.text;
    json["files"][file] = {{"size", source.size}, {"fnv1a", hash_text(source.hash)}};
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace devsan::report

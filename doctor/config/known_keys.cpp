#include "doctor/config/known_keys.h"

#include <algorithm>

#include "doctor/embedded.h"

namespace devsan::doctor {
namespace {

std::optional<double> bound(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found == json.end() ? std::nullopt : std::optional(found->get<double>());
}

KeyInfo key_info(const Json& json) {
  KeyInfo info;
  info.type = json.at("type");
  if (json.contains("values")) info.values = json.at("values").get<std::vector<Json>>();
  info.at_least = bound(json, "ge");
  info.above = bound(json, "gt");
  info.at_most = bound(json, "le");
  info.optional = json.contains("optional");
  info.deprecated = json.contains("deprecated");
  info.replacement = json.value("deprecated", "");
  return info;
}

KnownKeys read() {
  const Json json = Json::parse(kKnownKeysJson);
  KnownKeys known;
  known.deepspeed = json.at("versions").at("deepspeed");
  known.accelerate = json.at("versions").at("accelerate");
  for (const auto& [path, section] : json.at("sections").items()) {
    Section& read_section = known.sections[path];
    read_section.closed = section.at("closed");
    for (const auto& [name, info] : section.at("keys").items()) read_section.keys[name] = key_info(info);
  }
  known.removed = json.at("removed");
  known.filled_by_transformers = json.at("auto").at("transformers");
  known.filled_by_accelerate = json.at("auto").at("accelerate");
  const Json& accelerate = json.at("accelerate");
  known.accelerate_keys = accelerate.at("keys");
  known.accelerate_sagemaker = accelerate.at("sagemaker");
  known.accelerate_deepspeed = accelerate.at("deepspeed_config");
  known.accelerate_fsdp = accelerate.at("fsdp_config");
  known.distributed_types = accelerate.at("distributed_types");
  return known;
}

}  // namespace

std::vector<std::string> Section::names() const {
  std::vector<std::string> names;
  for (const auto& [name, info] : keys) names.push_back(name);
  return names;
}

const KnownKeys& known_keys() {
  static const KnownKeys known = read();
  return known;
}

bool has_word(const std::vector<std::string>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

}  // namespace devsan::doctor

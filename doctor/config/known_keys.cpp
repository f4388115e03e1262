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
  const std::string reading = json.value("read", "");
  info.reading = reading == "plain" ? Reading::plain : (reading == "text" ? Reading::text : Reading::converted);
  if (json.contains("values")) info.values = json.at("values").get<std::vector<Json>>();
  if (json.contains("words")) info.words = json.at("words").get<std::vector<std::string>>();
  info.any_case = json.contains("any_case");
  info.open = json.contains("open");
  info.at_least = bound(json, "ge");
  info.above = bound(json, "gt");
  info.at_most = bound(json, "le");
  info.optional = json.contains("optional");
  info.deprecated = json.contains("deprecated");
  info.replacement = json.value("deprecated", "");
  if (json.contains("when")) {
    const Json& when = json.at("when");
    const bool negated = when.contains("is_not");
    info.when = {when.at("key"), when.at(negated ? "is_not" : "is"), negated, when.at("unset")};
  }
  return info;
}

std::map<std::string, Section> sections_of(const Json& json) {
  std::map<std::string, Section> sections;
  for (const auto& [path, section] : json.items()) {
    Section& read_section = sections[path];
    read_section.closed = section.value("closed", false);
    read_section.prefix = section.value("prefix", "");
    for (const auto& [name, info] : section.at("keys").items()) read_section.keys[name] = key_info(info);
  }
  return sections;
}

KnownKeys read() {
  const Json json = Json::parse(kKnownKeysJson);
  KnownKeys known;
  known.deepspeed = json.at("versions").at("deepspeed");
  known.accelerate = json.at("versions").at("accelerate");
  known.sections = sections_of(json.at("sections"));
  known.removed = json.at("removed");
  known.renamed = json.at("renamed");
  const Json& optimizers = json.at("optimizers");
  known.optimizers = {optimizers.at("deepspeed"), optimizers.at("zero"), optimizers.at("torch"),
                      optimizers.at("earlier")};
  known.filled_by_transformers = json.at("auto").at("transformers");
  known.filled_by_accelerate = json.at("auto").at("accelerate");
  const Json& accelerate = json.at("accelerate");
  known.accelerate_keys = accelerate.at("keys");
  known.accelerate_sagemaker = accelerate.at("sagemaker");
  known.accelerate_sections = sections_of(accelerate.at("sections"));
  known.distributed_types = accelerate.at("distributed_types");
  known.accelerate_earlier_keys = accelerate.at("earlier").at("keys");
  known.accelerate_earlier_types = accelerate.at("earlier").at("distributed_types");
  return known;
}

}  // namespace

std::vector<std::string> Section::names() const {
  std::vector<std::string> names;
  for (const auto& [name, info] : keys) names.push_back(name);
  return names;
}

std::string Section::whole_name(const std::string& key) const {
  return keys.contains(key) || key.starts_with(prefix) ? key : prefix + key;
}

const KnownKeys& known_keys() {
  static const KnownKeys known = read();
  return known;
}

bool has_word(const std::vector<std::string>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

}  // namespace devsan::doctor

#include "doctor/config/accelerate.h"

#include "doctor/config/key_values.h"
#include "doctor/config/known_keys.h"

namespace devsan::doctor {

const Json* accelerate_value(const Json& config, const std::string& section, const std::string& key) {
  const Json* object = section.empty() ? &config : find_value(config, section);
  if (object == nullptr || !object->is_object()) return nullptr;
  const Section& known = known_keys().accelerate_sections.at(section);
  const Json* found = nullptr;
  for (const auto& [name, value] : object->items()) {
    if (known.whole_name(name) == key) found = &value;
  }
  return found;
}

std::string accelerate_text(const Json& config, const std::string& section, const std::string& key,
                            const std::string& unset) {
  const Json* value = accelerate_value(config, section, key);
  return value == nullptr || value->is_null() ? unset : python_text(*value);
}

bool reads_section(const Json& config, const std::string& section) {
  const std::string type = text_at(config, "distributed_type");
  if (section == "deepspeed_config") return type == "DEEPSPEED";
  if (section == "fsdp_config") return type == "FSDP";
  if (section == "dynamo_config") return type != "DEEPSPEED";
  if (section == "megatron_lm_config") return type == "MEGATRON_LM";
  if (section == "fp8_config") return lower(text_at(config, "mixed_precision")) == "fp8";
  return true;
}

}  // namespace devsan::doctor

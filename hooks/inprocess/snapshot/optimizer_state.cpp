#include "hooks/inprocess/snapshot/optimizer_state.h"

#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/own_attributes.h"

namespace devsan::hooks {

namespace {

std::string name_of_parameter(const ObjectSearch& search, const void* parameter) {
  const std::string name = name_in_modules(search, parameter);
  if (!name.empty()) return name;
  const std::uint32_t place = search.find_place(parameter);
  return place != kNoPlace ? search.path_to(place) : "a parameter";
}

}  // namespace

bool keeps_parameter_groups(const void* object) noexcept {
  if (is_dict(object) || !has_instance_dict(object)) return false;
  const void* groups = OwnAttributes(object)["param_groups"];
  return groups != nullptr && is_list(groups);
}

std::string name_in_modules(const ObjectSearch& search, const void* tensor) {
  std::string path;
  for (const Holding* at : search.outwards(search.owner(tensor))) {
    path = text_of(at->link.name) + (path.empty() ? "" : ".") + path;
  }
  return path;
}

OptimizerState optimizer_state(const ObjectSearch& search, const void* tensor) {
  for (const Holding& entry : search.holdings_of(tensor)) {
    if (entry.link.kind != LinkKind::key || entry.link.name == nullptr) continue;
    for (const Holding& of_parameter : search.holdings_of(entry.holder)) {
      if (of_parameter.link.kind != LinkKind::key || of_parameter.link.key == nullptr) continue;
      for (const Holding& state : search.holdings_of(of_parameter.holder)) {
        if (!is_name(state.link.name, "state") || !keeps_parameter_groups(state.holder)) continue;
        return {state.holder, entry.link.name,
                text_of(entry.link.name) + " of " + name_of_parameter(search, of_parameter.link.key)};
      }
    }
  }
  return {};
}

}  // namespace devsan::hooks

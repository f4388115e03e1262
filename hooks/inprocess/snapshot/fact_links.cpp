#include "hooks/inprocess/snapshot/fact_links.h"

#include <array>
#include <limits>
#include <string_view>

#include "hooks/inprocess/interpreter/code_api.h"

namespace devsan::hooks {

namespace {

using trace::FactLinkKind;
using trace::ObjectKind;

struct HookTable {
  std::string_view attribute;
  FactLinkKind kind;
};
constexpr std::array kHookTables = {
    HookTable{"_forward_hooks", FactLinkKind::forward_hook},
    HookTable{"_forward_pre_hooks", FactLinkKind::forward_pre_hook},
    HookTable{"_backward_hooks", FactLinkKind::backward_hook},
    HookTable{"_backward_pre_hooks", FactLinkKind::backward_pre_hook},
};

bool is_empty(const void* object) noexcept {
  if (object == python.none) return true;
  if (is_dict(object)) return field<std::ptrdiff_t>(object, kDictUsed) == 0;
  return is_builtin(object, "set") && field<std::ptrdiff_t>(object, kSetUsed) == 0;
}

// What an object holds, in the terms of the trace.
class Translator final : public LinkVisitor {
 public:
  Translator(ObjectKind holder, FactLinkVisitor& next) : holder_(holder), next_(next) {}

  bool link(const Link& link, void* object) override {
    const std::int32_t position = entries_++;
    switch (link.kind) {
      case LinkKind::attribute:
        return attribute(link, object);
      case LinkKind::key:
        return keyed(link, position, object);
      case LinkKind::gradient:
      case LinkKind::local:
      case LinkKind::global:
        return true;
      default:
        return next_.link(as_fact(link), object, nullptr);
    }
  }

 private:
  bool named(FactLinkKind kind, const Link& link, void* object) {
    return next_.link({kind, link.name, link.text}, object, nullptr);
  }

  bool attribute(const Link& link, void* object) {
    char buffer[64];
    const std::string_view name = link.text != nullptr ? link.text : text_of(link.name, buffer, sizeof buffer);
    if (name.starts_with("__") && holder_ == ObjectKind::class_object) return true;
    if (holder_ == ObjectKind::method && name == "__self__") return named(FactLinkKind::self_of, {}, object);
    if (holder_ != ObjectKind::module || !name.starts_with('_')) return named(FactLinkKind::attribute, link, object);
    if (is_empty(object)) return true;  // every module has a dozen tables of hooks, most of them empty
    for (const HookTable& table : kHookTables) {
      if (name == table.attribute && is_dict(object)) return hooks(table.kind, object);
    }
    return named(FactLinkKind::attribute, link, object);
  }

  bool hooks(FactLinkKind kind, void* table) {
    std::ptrdiff_t at = 0;
    void* key = nullptr;
    void* value = nullptr;
    for (std::int32_t k = 0; python.PyDict_Next(table, &at, &key, &value) != 0; ++k) {
      if (value != nullptr && !next_.link({kind, nullptr, nullptr, k}, value, nullptr)) return false;
    }
    return true;
  }

  bool keyed(const Link& link, std::int32_t position, void* object) {
    if (link.name != nullptr) return named(FactLinkKind::keyed_entry, link, object);
    const bool numbered = link.key != nullptr && is_builtin(link.key, "int");
    const std::optional<long> number = numbered ? integer_in(link.key) : std::nullopt;
    if (number && *number == static_cast<std::int32_t>(*number)) {
      const auto index = static_cast<std::int32_t>(*number);
      return next_.link({FactLinkKind::numbered_entry, nullptr, nullptr, index}, object, nullptr);
    }
    const bool goes_on = link.key == nullptr || next_.link({FactLinkKind::key_of_entry, nullptr, nullptr, position},
                                                           const_cast<void*>(link.key), nullptr);
    return goes_on && next_.link({FactLinkKind::entry_of_key, nullptr, nullptr, position}, object, nullptr);
  }

  ObjectKind holder_;
  FactLinkVisitor& next_;
  std::int32_t entries_ = 0;
};

bool visit_defaults(void* function, FactLinkVisitor& visitor) {
  const void* code = code_of_function(function);
  const void* values = code_api().PyFunction_GetDefaults(function);
  const std::ptrdiff_t count = values != nullptr && is_tuple(values) ? size_of(values) : 0;
  for (std::ptrdiff_t k = 0; k < count; ++k) {
    const std::ptrdiff_t argument = code_arguments(code) - count + k;
    auto* value = const_cast<void*>(tuple_entry(values, k));
    const FactLink link{FactLinkKind::default_value, code_local_name(code, argument), nullptr,
                        static_cast<std::int32_t>(argument)};
    if (value != nullptr && !visitor.link(link, value, nullptr)) return false;
  }
  void* by_keyword = code_api().PyFunction_GetKwDefaults(function);
  if (by_keyword == nullptr || !is_dict(by_keyword)) return true;
  std::ptrdiff_t at = 0;
  void* key = nullptr;
  void* value = nullptr;
  while (python.PyDict_Next(by_keyword, &at, &key, &value) != 0) {
    if (value != nullptr && !visitor.link({FactLinkKind::keyword_default, key}, value, nullptr)) return false;
  }
  return true;
}

bool visit_bases(void* type, FactDescriber& describer, FactLinkVisitor& visitor) {
  for (std::int32_t k = 1; base_at(type, k) != nullptr; ++k) {
    auto* base = const_cast<void*>(base_at(type, k));
    const bool own = describer.type(base).own;
    if (own && !visitor.link({FactLinkKind::base_class, nullptr, nullptr, k}, base, nullptr)) return false;
  }
  return true;
}

// Whether the entries of a dictionary are the environment of a process, which no trace holds.
bool is_environment(const void* object) noexcept {
  constexpr std::ptrdiff_t kMaxVariables = 1000;
  if (!is_dict(object) || field<std::ptrdiff_t>(object, kDictUsed) > kMaxVariables) return false;
  return dict_entry(object, "PATH") != nullptr;
}

}  // namespace

FactLink as_fact(const Link& link) noexcept {
  constexpr std::ptrdiff_t kMaxIndex = std::numeric_limits<std::int32_t>::max();
  FactLink fact{FactLinkKind::attribute, link.name, link.text};
  switch (link.kind) {
    case LinkKind::index:
      fact.kind = FactLinkKind::entry;
      fact.index = link.index <= kMaxIndex ? static_cast<std::int32_t>(link.index) : -1;
      break;
    case LinkKind::key:
      fact.kind = link.name != nullptr ? FactLinkKind::keyed_entry : FactLinkKind::entry_of_key;
      break;
    case LinkKind::member:
      fact.kind = FactLinkKind::member;
      break;
    case LinkKind::parameter:
      fact.kind = FactLinkKind::parameter;
      break;
    case LinkKind::buffer:
      fact.kind = FactLinkKind::buffer;
      break;
    case LinkKind::child:
      fact.kind = FactLinkKind::child;
      break;
    case LinkKind::closure:
      fact.kind = FactLinkKind::closure;
      break;
    default:
      break;
  }
  return fact;
}

void visit_fact_links(void* object, ObjectKind kind, const c10::TensorImpl* tensor, FactDescriber& describer,
                      FactLinkVisitor& visitor) {
  if (tensor != nullptr) {
    const c10::TensorImpl* gradient = gradient_of(tensor);
    if (device_of(gradient) != 0 && !visitor.link({FactLinkKind::gradient}, nullptr, gradient)) return;
    if (object == nullptr) return;
  }
  const bool instance = kind != ObjectKind::class_object && describer.type(type_of(object)).extends_own;
  auto* const type = const_cast<void*>(type_of(object));
  if (instance && !visitor.link({FactLinkKind::class_of}, type, nullptr)) return;
  if (kind == ObjectKind::class_object) {
    if (!describer.type(object).extends_own || !visit_bases(object, describer, visitor)) return;
  }
  if (kind == ObjectKind::method) {
    auto* function = field<void*>(object, kMethodFunction);
    if (function != nullptr && !visitor.link({FactLinkKind::function_of}, function, nullptr)) return;
  }
  if (kind == ObjectKind::function && !visit_defaults(object, visitor)) return;
  if (!leads_on(object) || is_environment(object)) return;
  Translator translator(kind, visitor);
  visit_links(object, translator);
}

}  // namespace devsan::hooks

#include "hooks/inprocess/snapshot/fact_objects.h"

#include <array>
#include <string>
#include <string_view>

#include "hooks/inprocess/bridge/tensor_objects.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/code_table.h"
#include "hooks/inprocess/interpreter/own_attributes.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/provenance/device_slots.h"
#include "hooks/inprocess/provenance/lineage_nodes.h"
#include "hooks/inprocess/snapshot/fact_bounds.h"
#include "hooks/inprocess/snapshot/function_behind.h"
#include "hooks/inprocess/snapshot/object_graph.h"
#include "hooks/inprocess/snapshot/object_members.h"
#include "hooks/inprocess/snapshot/optimizer_state.h"
#include "hooks/inprocess/source/code_names.h"

namespace devsan::hooks {

namespace {

using trace::ObjectKind;

// The module that a class statement stands in; empty for a type in C, whose name says it.
std::string module_of(const void* type) {
  const void* dict = is_heap_type(type) ? field<const void*>(type, kTypeDict) : nullptr;
  const void* module = dict != nullptr ? dict_entry(dict, "__module__") : nullptr;
  return module != nullptr && is_text(module) ? text_of(module) : std::string();
}

std::string qualified(const void* type) {
  const std::string name = field<const char*>(type, kTypeName);
  const std::string module = module_of(type);
  return module.empty() || name.starts_with(module + ".") ? name : module + "." + name;
}

struct KindOfType {
  std::string_view name;
  ObjectKind kind;
};
constexpr std::array kBuiltinKinds = {
    KindOfType{"bool", ObjectKind::boolean},
    KindOfType{"int", ObjectKind::number},
    KindOfType{"float", ObjectKind::number},
    KindOfType{"complex", ObjectKind::number},
    KindOfType{"str", ObjectKind::string},
    KindOfType{"NoneType", ObjectKind::none},
    KindOfType{"list", ObjectKind::list},
    KindOfType{"collections.deque", ObjectKind::list},
    KindOfType{"tuple", ObjectKind::tuple},
    KindOfType{"dict", ObjectKind::dict},
    KindOfType{"set", ObjectKind::set},
    KindOfType{"frozenset", ObjectKind::set},
    KindOfType{"function", ObjectKind::function},
    KindOfType{"method", ObjectKind::method},
    KindOfType{"type", ObjectKind::class_object},
    KindOfType{"module", ObjectKind::python_module},
    KindOfType{"functools.partial", ObjectKind::partial},
    KindOfType{"torch.device", ObjectKind::device},
    KindOfType{"torch.dtype", ObjectKind::dtype},
    KindOfType{"torch._C.Generator", ObjectKind::generator},
};
constexpr std::array kTorchKinds = {
    KindOfType{"torch.nn.modules.module.Module", ObjectKind::module},
    KindOfType{"torch.nn.parameter.Parameter", ObjectKind::parameter},
    KindOfType{"torch.optim.optimizer.Optimizer", ObjectKind::optimizer},
    KindOfType{"torch._C.TensorBase", ObjectKind::tensor},
};

// What an object of the type is, by the nearest class above that says it. A class statement gives no name with a dot.
ObjectKind kind_by_bases(const void* type) {
  for (int depth = 0; type != nullptr && depth < 32; ++depth, type = field<const void*>(type, kTypeBase)) {
    const std::string name = qualified(type);
    for (const KindOfType& known : kTorchKinds) {
      if (name == known.name) return known.kind;
    }
    const std::string_view given = field<const char*>(type, kTypeName);
    for (const KindOfType& known : kBuiltinKinds) {
      if (given == known.name && (given.find('.') != given.npos || !is_heap_type(type))) return known.kind;
    }
  }
  return ObjectKind::other;
}

// Modules, optimizers and the like may come second among a class's bases.
ObjectKind kind_of_type(const void* type) {
  const ObjectKind kind = kind_by_bases(type);
  for (std::ptrdiff_t k = 1; kind == ObjectKind::other && base_at(type, k) != nullptr; ++k) {
    const std::string name = qualified(base_at(type, k));
    for (const KindOfType& known : kTorchKinds) {
      if (name == known.name) return known.kind;
    }
  }
  return kind;
}

bool is_generated(const void* function) noexcept {
  char buffer[64];
  return text_of(field<const void*>(code_of_function(function), code_members.filename), buffer, sizeof buffer) ==
         "<string>";
}

// Of a TypeFact or an ObjectFact.
template <class Fact>
void place_code(const void* code, Fact& fact) {
  fact.file = file_of(code);
  fact.function = qualified_name(code);
  fact.line = code_first_line(code);
}

void take_type(const TypeFact& type, trace::ObjectFact& fact) {
  fact.type = type.name;
  fact.file = type.file;
  fact.function = type.function;
  fact.line = type.line;
}

const void* function_to_place(const void* object, ObjectKind kind) {
  if (kind == ObjectKind::method) object = field<const void*>(object, kMethodFunction);
  return object != nullptr && is_function(object) ? object : nullptr;
}

void add_number(std::int64_t number, trace::ObjectFact& fact) {
  fact.flags |= trace::kHasNumber;
  fact.number = number;
}

void add_size(const void* object, ObjectKind kind, trace::ObjectFact& fact) {
  const std::ptrdiff_t entries = kind == ObjectKind::dict  ? field<std::ptrdiff_t>(object, kDictUsed)
                                 : kind == ObjectKind::set ? field<std::ptrdiff_t>(object, kSetUsed)
                                                           : size_of(object);
  add_number(entries, fact);
}

trace::StringId short_text(const void* object) {
  char buffer[kMaxFactText + 2];
  const std::string_view text = text_of(object, buffer, sizeof buffer);
  return text.size() <= kMaxFactText ? runtime.recorder->intern_string(text) : trace::StringId::none;
}

}  // namespace

const void* function_of_class(const void* type) {
  const void* dict = is_heap_type(type) ? field<const void*>(type, kTypeDict) : nullptr;
  if (dict == nullptr || !is_dict(dict)) return nullptr;
  for (const char* name : {"forward", "__init__"}) {
    const void* function = function_behind(dict_entry(dict, name));
    if (function != nullptr && !is_generated(function)) return function;
  }
  std::ptrdiff_t at = 0;
  void* key = nullptr;
  void* value = nullptr;
  while (python.PyDict_Next(const_cast<void*>(dict), &at, &key, &value) != 0) {
    const void* function = value != nullptr && !is_type(value) ? function_behind(value) : nullptr;
    if (function != nullptr && !is_generated(function)) return function;
  }
  return nullptr;
}

TypeFact FactDescriber::look_at(const void* type) {
  TypeFact fact;
  fact.kind = kind_of_type(type);
  fact.name = runtime.recorder->intern_string(qualified(type));
  if (const void* function = function_of_class(type)) place_code(code_of_function(function), fact);
  fact.own = fact.file != trace::StringId::none || module_of(type) == "__main__";
  fact.extends_own = fact.own;
  for (std::ptrdiff_t k = 1; !fact.extends_own && base_at(type, k) != nullptr; ++k) {
    fact.extends_own = function_of_class(base_at(type, k)) != nullptr;
  }
  return fact;
}

const TypeFact& FactDescriber::type(const void* type) {
  const auto known = types_.find(type);
  return known != types_.end() ? known->second : types_.emplace(type, look_at(type)).first->second;
}

const c10::TensorImpl* FactDescriber::tensor_at(const void* object) {
  if (!layout_.known()) layout_.learn_from(object);
  return layout_.tensor_at(object);
}

void FactDescriber::add_value(const void* object, bool with_text, trace::ObjectFact& fact) {
  switch (fact.kind) {
    case ObjectKind::boolean:
    case ObjectKind::number:
      if (const auto number = integer_in(object)) add_number(*number, fact);
      break;
    case ObjectKind::string:
      if (with_text) fact.text = short_text(object);
      break;
    case ObjectKind::list:
    case ObjectKind::tuple:
    case ObjectKind::dict:
    case ObjectKind::set:
      add_size(object, fact.kind, fact);
      break;
    case ObjectKind::python_module:
      fact.text = runtime.recorder->intern_string(text_of(OwnAttributes(object)["__name__"]));
      break;
    case ObjectKind::device:
      fact.device = device_slot(device_in(object));
      fact.text = runtime.recorder->device_name(fact.device);
      break;
    case ObjectKind::generator:
      fact.device = device_slot(device_of_generator(generator_of(object)));
      break;
    default:
      break;
  }
}

trace::ObjectFact FactDescriber::describe(const void* object, bool with_text) {
  if (const c10::TensorImpl* tensor = tensor_at(object)) return describe_tensor(tensor, object);
  trace::ObjectFact fact{};
  fact.operand = trace::kNoOperand;
  const TypeFact& known = type(type_of(object));
  fact.kind = is_type(object) ? ObjectKind::class_object : known.kind;
  take_type(known, fact);
  if (fact.kind == ObjectKind::other && known.extends_own && keeps_parameter_groups(object)) {
    fact.kind = ObjectKind::optimizer;
  }
  if (is_type(object)) {
    take_type(type(object), fact);
  } else if (const void* function = function_to_place(object, fact.kind)) {
    place_code(code_of_function(function), fact);
  }
  add_value(object, with_text, fact);
  return fact;
}

trace::ObjectFact FactDescriber::describe_tensor(const c10::TensorImpl* tensor, const void* object) {
  trace::ObjectFact fact{};
  fact.kind = ObjectKind::tensor;
  fact.operand = trace::kNoOperand;
  if (object != nullptr) {
    const TypeFact& known = type(type_of(object));
    if (known.kind == ObjectKind::parameter) fact.kind = ObjectKind::parameter;
    take_type(known, fact);
  }
  fact.device = device_slot_of(tensor);
  fact.lineage = tensor_history(tensor);
  if (is_trained(tensor)) fact.flags |= trace::kObjectRequiresGrad;
  if (!has_graph(tensor)) fact.flags |= trace::kObjectLeaf;
  add_number(static_cast<std::int64_t>(dims_of(tensor)), fact);
  return fact;
}

}  // namespace devsan::hooks

// What is recorded of one object: its kind, its type, its value where that is small, and where its code is.
//
// With the GIL (PythonSection). Runs no code of the program, keeps no reference. May throw std::bad_alloc.
#pragma once

#include <unordered_map>

#include "hooks/inprocess/bridge/tensor_facts.h"
#include "hooks/inprocess/snapshot/tensor_layout.h"
#include "trace/fact_layout.h"

namespace devsan::hooks {

// What all objects of a type have in common.
struct TypeFact {
  trace::ObjectKind kind = trace::ObjectKind::other;
  trace::StringId name = trace::StringId::none;
  // A function that the class itself defines, `forward` or `__init__` if it has one.
  trace::StringId file = trace::StringId::none;
  trace::StringId function = trace::StringId::none;
  std::int32_t line = 0;
  bool own = false;          // a class of the program, or of a library, rather than torch's or Python's
  bool extends_own = false;  // it, or one that it is derived from
};

class FactDescriber {
 public:
  const TypeFact& type(const void* type);
  const c10::TensorImpl* tensor_at(const void* object);

  // Without what only the whole record knows: operand and storage. `with_text` false: a string stays untold.
  trace::ObjectFact describe(const void* object, bool with_text);
  // Of a tensor that may have no Python object.
  trace::ObjectFact describe_tensor(const c10::TensorImpl* tensor, const void* object);

 private:
  TypeFact look_at(const void* type);
  static void add_value(const void* object, bool with_text, trace::ObjectFact& fact);

  TensorLayout layout_;
  std::unordered_map<const void*, TypeFact> types_;
};

// The functions of a class's own dictionary tell where a class is.
const void* function_of_class(const void* type);

}  // namespace devsan::hooks

#include "hooks/inprocess/snapshot/function_behind.h"

#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/code_table.h"
#include "hooks/inprocess/snapshot/object_graph.h"

namespace devsan::hooks {

namespace {

constexpr int kMaxWrappers = 4;
constexpr std::ptrdiff_t kFirstField = 16;  // of bound methods, properties, class and static methods, partials, cells

// What a wrapper made by functools.wraps, or by a decorator, calls: the one function in its closure.
const void* function_in_closure(const void* function) noexcept {
  const void* cells = code_api().PyFunction_GetClosure(const_cast<void*>(function));
  const void* found = nullptr;
  if (cells == nullptr || !is_tuple(cells)) return nullptr;
  for (std::ptrdiff_t k = 0; k < size_of(cells); ++k) {
    const void* cell = field<const void*>(cells, kTupleItems + k * static_cast<std::ptrdiff_t>(sizeof(void*)));
    const void* content = cell != nullptr ? field<const void*>(cell, kFirstField) : nullptr;
    if (content == nullptr || !is_function(content)) continue;
    if (found != nullptr) return nullptr;
    found = content;
  }
  return found;
}

}  // namespace

const void* function_behind(const void* object) {
  for (int depth = 0; object != nullptr && depth < kMaxWrappers; ++depth) {
    if (is_function(object)) {
      if ((code_table.classify(code_of_function(object)) & kTorchCode) == 0) return object;
      object = function_in_closure(object);  // torch's own decorators, such as no_grad()
      continue;
    }
    bool wraps = type_name(object) == "functools.partial";
    for (const char* name : {"method", "property", "classmethod", "staticmethod"}) {
      wraps = wraps || is_builtin(object, name);
    }
    if (!wraps) return nullptr;
    object = field<const void*>(object, kFirstField);
  }
  return nullptr;
}

}  // namespace devsan::hooks

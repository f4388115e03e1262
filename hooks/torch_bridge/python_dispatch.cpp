// Operators whose kernels are written in Python, as torch 2.14 calls them: `torch.library.custom_op` gives an operator
// an object of its own to be called by, which finds the kernel and hands Python's arguments to it as they are. Only
// what has to go on to the dispatcher does, and past its front. One function of torch._C makes these objects. It is
// replaced when Python defines an operator; what it makes keeps the address that it is called by, and that is replaced
// in each.
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/UndefinedTensorImpl.h>
#include <c10/util/SmallVector.h>

#include <array>
#include <atomic>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "hooks/inprocess/bridge/tensor_facts.h"
#include "hooks/inprocess/bridge/tensor_objects.h"
#include "hooks/inprocess/common/own_memory.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/events/operator_table.h"
#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/own_attributes.h"
#include "hooks/inprocess/interpreter/python_api.h"
#include "hooks/torch_bridge/boxed_call.h"
#include "hooks/torch_bridge/tensor_fields.h"
#include "hooks/torch_bridge/torch_function.h"

namespace devsan::hooks {

// torch::Library& torch::Library::_def(c10::FunctionSchema&&, c10::OperatorName*, const std::vector<at::Tag>&,
// torch::_RegisterOrVerify) &. Weak: releases that have it under another name are older than those concerned.
void* define_operator(void* library, void* schema, void* name, const void* tags, int verify) __asm__(
    "_ZNR5torch7Library4_defEON3c1014FunctionSchemaEPNS1_12OperatorNameERKSt6vectorINS_10headeronly3TagESaIS8_EENS_17_"
    "RegisterOrVerifyE") DEVSAN_TORCH_FUNCTION;

namespace {

// CPython's calling conventions: of a method with METH_FASTCALL | METH_KEYWORDS, and of an object.
using Method = void*(void* self, void* const* arguments, std::ptrdiff_t count, void* names);
using VectorCall = void*(void* callable, void* const* arguments, std::size_t count, void* names);
constexpr int kFastCallWithKeywords = 0x82;
constexpr std::size_t kCount = ~(std::size_t{1} << 63);  // the highest bit is PY_VECTORCALL_ARGUMENTS_OFFSET
constexpr unsigned kHasVectorCall = 11;                  // Py_TPFLAGS_HAVE_VECTORCALL
constexpr std::ptrdiff_t kTypeVectorCallOffset = 56;     // PyTypeObject::tp_vectorcall_offset
constexpr std::ptrdiff_t kMethodDefinition = 16;         // PyCFunctionObject::m_ml

struct MethodDefinition {  // PyMethodDef
  const char* name;
  Method* method;
  int flags;
};

struct Callable {
  VectorCall* real;
  c10::OperatorHandle op;
};

// By the address of the object; a freed one's entry is the next one's that is made in its place. The GIL guards it. It
// is never destroyed, since threads may go on while the process exits.
std::unordered_map<const void*, Callable>& callables() {
  static auto* const all = new std::unordered_map<const void*, Callable>;
  return *all;
}

// As tensor_of(), but the place is looked for once.
const c10::TensorImpl* tensor_at(const void* object) noexcept {
  static std::ptrdiff_t offset = -1;
  if (base_tensor_type(type_of(object)) == nullptr) return nullptr;
  if (offset < 0) offset = tensor_offset_in(object);
  return offset < 0 ? nullptr : field<const c10::TensorImpl*>(object, offset);
}

// None for all that is no operand.
c10::IValue value_of(const void* object) {
  const c10::TensorImpl* tensor = tensor_at(object);
  if (tensor != nullptr && tensor != c10::UndefinedTensorImpl::singleton()) {
    return at::Tensor(c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>::reclaim_copy(
        const_cast<c10::TensorImpl*>(tensor)));
  }
  if (const DeviceKey device = device_in(object)) return device_of_key(device);
  return {};
}

const void* const* items_of(const void* sequence) noexcept {
  return is_list(sequence) ? field<const void* const*>(sequence, kListItems)
                           : reinterpret_cast<const void* const*>(static_cast<const char*>(sequence) + kTupleItems);
}

// A list of numbers is no operand: its first entry tells.
c10::IValue value_or_list_of(const void* object) {
  if (!is_list(object) && !is_tuple(object)) return value_of(object);
  const void* const* items = items_of(object);
  const std::ptrdiff_t count = size_of(object);
  if (count == 0 || (items[0] != python.none && tensor_at(items[0]) == nullptr)) return {};
  c10::impl::GenericList list(c10::AnyType::get());
  for (std::ptrdiff_t k = 0; k < count; ++k) list.push_back(value_of(items[k]));
  return list;
}

using Values = c10::SmallVector<c10::IValue, 8>;

// In the order of the schema.
Values arguments_of(const c10::FunctionSchema& schema, void* const* arguments, std::size_t count, const void* names) {
  const std::vector<c10::Argument>& wanted = schema.arguments();
  Values values(wanted.size());
  for (std::size_t k = 0; k < count && k < values.size(); ++k) values[k] = value_or_list_of(arguments[k]);
  const std::ptrdiff_t named = names != nullptr ? size_of(names) : 0;
  for (std::ptrdiff_t k = 0; k < named; ++k) {
    char buffer[256];
    const std::string_view name = text_of(items_of(names)[k], buffer, sizeof buffer);
    for (std::size_t place = 0; place < wanted.size(); ++place) {
      if (wanted[place].name() == name) {
        values[place] = value_or_list_of(arguments[count + static_cast<std::size_t>(k)]);
      }
    }
  }
  return values;
}

Values results_of(const void* result) {
  if (!is_tuple(result)) return {value_or_list_of(result)};
  Values values;
  for (std::ptrdiff_t k = 0; k < size_of(result); ++k) values.push_back(value_or_list_of(items_of(result)[k]));
  return values;
}

void begin(std::optional<BoxedPythonCall>& call, const c10::OperatorHandle& op, void* const* arguments,
           std::size_t count, const void* names) noexcept {
  try {
    const c10::FunctionSchema& schema = op.schema();
    const Values values = arguments_of(schema, arguments, count, names);
    call.emplace(schema, BoxedArguments(values.data(), values.size()));
  } catch (...) {  // no memory
  }
}

void end(BoxedPythonCall& call, const void* result) noexcept {
  if (result == nullptr) return call.failed();
  Values results;
  try {
    results = results_of(result);
  } catch (...) {  // no memory
  }
  call.returned(results);
}

// May be left by the end of its thread, which unwinds the stack.
void* call_wrapper(void* callable, void* const* arguments, std::size_t count, void* names) {
  const Callable& found = callables().find(callable)->second;
  VectorCall* const real = found.real;
  std::optional<BoxedPythonCall> call;
  begin(call, found.op, arguments, count & kCount, names);
  void* result = real(callable, arguments, count, names);
  if (call.has_value()) end(*call, result);
  return result;
}

// The operator that a torch._C._DispatchOperatorHandle holds: pybind11 keeps the address in the first word of the
// object's own. It is a handle if its two words are one operator and the node of a list that this operator lies in.
const c10::OperatorHandle* operator_in(const void* handle) noexcept {
  const char* const address = field<const char*>(handle, 16);
  if (address == nullptr) return nullptr;
  const std::array<const char*, 2> addresses{address, address + sizeof(void*)};
  std::array<std::uint64_t, 2> words{};
  if (!read_own_words(addresses, words) || words[1] == 0 || words[0] != words[1] + 2 * sizeof(void*)) return nullptr;
  return reinterpret_cast<const c10::OperatorHandle*>(address);
}

void watch(void* callable, const void* handle) noexcept {
  const auto offset = field<std::ptrdiff_t>(type_of(callable), kTypeVectorCallOffset);
  const c10::OperatorHandle* const op = operator_in(handle);
  if (!has_type_flag(callable, kHasVectorCall) || offset <= 0 || op == nullptr) return;
  auto* const place = reinterpret_cast<VectorCall**>(static_cast<char*>(callable) + offset);
  try {
    callables().insert_or_assign(callable, Callable{*place, *op});
    *place = &call_wrapper;
  } catch (...) {  // no memory
  }
}

Method* make_callables = nullptr;

// Of the two that it makes, the second is for kernels that call the operator's next one.
void* make_callables_wrapper(void* self, void* const* arguments, std::ptrdiff_t count, void* names) {
  void* made = make_callables(self, arguments, count, names);
  if (made != nullptr && count > 0 && is_tuple(made) && size_of(made) == 2) {
    watch(field<void*>(made, kTupleItems), arguments[0]);
  }
  return made;
}

// With the GIL. Before 2.14 there is no such function. False where there is no torch._C yet.
bool replace_maker() noexcept {
  const OwnAttributes bindings = attributes_of_module("torch._C");
  if (!bindings) return false;
  if (const void* function = bindings["_dispatch_make_pyobj_dispatch_fns"];
      function != nullptr && is_builtin(function, "builtin_function_or_method")) {
    auto* const definition = field<MethodDefinition*>(function, kMethodDefinition);
    if (definition->flags == kFastCallWithKeywords) {
      make_callables = definition->method;
      definition->method = &make_callables_wrapper;
    }
  }
  return true;
}

// Libraries in C++ define operators, too, some of them without Python.
void* define_operator_wrapper(void* library, void* schema, void* name, const void* tags, int verify) {
  static constinit std::atomic<bool> replaced{false};
  if (!replaced.load(std::memory_order_relaxed) && runtime.has_python && interpreter_lives() &&
      python.PyGILState_Check() != 0) {
    const PythonSection section;
    replaced.store(replace_maker(), std::memory_order_relaxed);
  }
  return define_operator(library, schema, name, tags, verify);
}

DEVSAN_REPLACEMENTS const Replacement dispatch_replacements[] = {
    {reinterpret_cast<void*>(&define_operator), reinterpret_cast<void*>(&define_operator_wrapper)},
};

}  // namespace

}  // namespace devsan::hooks

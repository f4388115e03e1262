// Calls that come to operators by other ways than the typed functions (boxed_call.h) are seen at the dispatcher's
// front, through which every operator goes, and most programs never make one. So libtorch_cpu, which holds the
// dispatcher, goes on calling it directly until one of the functions below, that such calls begin with, is first
// entered.
#include <ATen/core/jit_type.h>

#include <atomic>
#include <cstdint>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/events/data_waits.h"
#include "hooks/inprocess/events/failure_notes.h"
#include "hooks/inprocess/events/operator_table.h"
#include "hooks/inprocess/interpreter/python_library.h"
#include "hooks/torch_bridge/boxed_call.h"
#include "hooks/torch_bridge/collective_groups.h"
#include "hooks/torch_bridge/torch_function.h"

namespace devsan::hooks {

// Functions of torch as plain functions of the same calling convention: a result that is an object is a first argument,
// an object that is passed by value an address. Weak: not every release has all of them.
// c10::IValue torch::jit::toIValue(py::handle, const c10::TypePtr&, std::optional<int32_t>): every argument of
// torch.ops.X.Y(…) and of a scripted function that Python calls.
#define DEVSAN_TO_IVALUE                             \
  "_ZN5torch3jit8toIValueEN8pybind116handleERKN3c10" \
  "4Type24SingletonOrSharedTypePtrIS4_EESt8optionalIiE"
using ToIValue = void*(void* result, void* object, const c10::TypePtr& type, std::uint64_t length);
ToIValue to_ivalue __asm__(DEVSAN_TO_IVALUE) DEVSAN_TORCH_FUNCTION;
// void torch::jit::InterpreterState::run(std::vector<c10::IValue>&): TorchScript
void interpret(void* state, void* stack) __asm__("_ZN5torch3jit16InterpreterState3runERSt6vectorIN3c106IValueESaIS4_EE")
    DEVSAN_TORCH_FUNCTION;
// bool torch::jit::mobile::InterpreterState::run(std::vector<c10::IValue>&)
bool interpret_mobile(void* state, void* stack) __asm__(
    "_ZN5torch3jit6mobile16InterpreterState3runERSt6vectorIN3c106IValueESaIS5_EE") DEVSAN_TORCH_FUNCTION;
// The stable C interface of extensions.
std::int32_t aoti_torch_call_dispatcher(const char* name, const char* overload,
                                        void* stack) __asm__("aoti_torch_call_dispatcher") DEVSAN_TORCH_FUNCTION;
std::int32_t torch_call_dispatcher(const char* name, const char* overload, void* stack,
                                   std::uint64_t version) __asm__("torch_call_dispatcher") DEVSAN_TORCH_FUNCTION;

// c10d::ProcessGroup::ProcessGroup(c10::intrusive_ptr<c10d::Store>, int, int): every collective of the group is an
// operator that c10d calls by its handle.
void make_process_group(void* group, void* store, int rank, int size) __asm__(
    "_ZN4c10d12ProcessGroupC1EN3c1013intrusive_ptrINS_5StoreENS1_6detail34intrusive_target_default_null_typeIS3_EEEEii")
    DEVSAN_TORCH_FUNCTION;

namespace {

constinit std::atomic<bool> demanded{false};

void demand() noexcept {
  if (demanded.load(std::memory_order_relaxed)) [[likely]]
    return;
  demanded.store(true, std::memory_order_relaxed);
  runtime.host->demand();
}

constinit PythonLibraryFunction<ToIValue> real_to_ivalue(DEVSAN_TO_IVALUE);
#undef DEVSAN_TO_IVALUE

// Torch calls a few operators of other kinds all the time: an optimizer's steps, and what the program wants to be seen
// in a profile, are marked by operators that take strings.
bool concerns_tensors(const c10::Type& type) noexcept {
  switch (type.kind()) {
    case c10::TypeKind::TensorType:
    case c10::TypeKind::ListType:
    case c10::TypeKind::TupleType:
    case c10::TypeKind::DictType:
    case c10::TypeKind::AnyType:
      return true;
    case c10::TypeKind::OptionalType:
      return concerns_tensors(*type.castRaw<c10::OptionalType>()->getElementType());
    default:
      return false;
  }
}

void* to_ivalue_wrapper(void* result, void* object, const c10::TypePtr& type, std::uint64_t length) {
  if (type->kind() == c10::TypeKind::StringType) {
    note_text_argument(object);
  } else if (type->kind() == c10::TypeKind::ClassType) {
    note_object_argument();
  } else if (concerns_tensors(*type)) {
    demand();
  }
  return real_to_ivalue.get()(result, object, type, length);
}
void interpret_wrapper(void* state, void* stack) {
  demand();
  interpret(state, stack);
}
bool interpret_mobile_wrapper(void* state, void* stack) {
  demand();
  return interpret_mobile(state, stack);
}
std::int32_t aoti_torch_call_dispatcher_wrapper(const char* name, const char* overload, void* stack) {
  demand();
  return aoti_torch_call_dispatcher(name, overload, stack);
}
std::int32_t torch_call_dispatcher_wrapper(const char* name, const char* overload, void* stack, std::uint64_t version) {
  demand();
  return torch_call_dispatcher(name, overload, stack, version);
}

// The first group is that of all ranks: PyTorch makes others out of it alone.
void make_process_group_wrapper(void* group, void* store, int rank, int size) {
  demand();
  group_is_made(group);
  note_rank(rank, size);
  runtime.recorder->add_rank(rank, size);
  make_process_group(group, store, rank, size);
}

#define DEVSAN_DEMANDS(function) \
  { reinterpret_cast<void*>(&function), reinterpret_cast<void*>(&function##_wrapper) }
DEVSAN_REPLACEMENTS const Replacement demand_replacements[] = {
    {reinterpret_cast<void*>(&to_ivalue), reinterpret_cast<void*>(&to_ivalue_wrapper), true},
    DEVSAN_DEMANDS(interpret),
    DEVSAN_DEMANDS(interpret_mobile),
    DEVSAN_DEMANDS(aoti_torch_call_dispatcher),
    DEVSAN_DEMANDS(torch_call_dispatcher),
    DEVSAN_DEMANDS(make_process_group),
};
#undef DEVSAN_DEMANDS

}  // namespace

void start_boxed_demand() noexcept {
  const bool python_is_watched = runtime.python_bindings_begin.load() == nullptr || real_to_ivalue.get() != nullptr;
  if (!python_is_watched || interpret == nullptr) demand();
}

}  // namespace devsan::hooks

// Where PyTorch gives the address of a tensor's memory away, to NumPy and through DLPack, or reads it itself without an
// operator, as torch.save() does.
#include <cstddef>
#include <string>

#include "hooks/inprocess/common/thread_state.h"
#include "hooks/inprocess/events/operator_table.h"
#include "hooks/inprocess/interpreter/python_library.h"
#include "hooks/torch_bridge/late_operator.h"
#include "hooks/torch_bridge/races.h"
#include "hooks/torch_bridge/torch_function.h"

namespace devsan::hooks {

// torch::utils::tensor_to_numpy is part of libtorch_python, which a program without Python does not load.
void* tensor_to_numpy(const at::Tensor& tensor,
                      bool force) __asm__("_ZN5torch5utils15tensor_to_numpyERKN2at6TensorEb") DEVSAN_TORCH_FUNCTION;
void* to_dlpack(const at::Tensor& tensor) __asm__("_ZN2at8toDLPackERKNS_6TensorE") DEVSAN_TORCH_FUNCTION;
void* to_dlpack_versioned(const at::Tensor& tensor) __asm__("_ZN2at17toDLPackVersionedERKNS_6TensorE")
    DEVSAN_TORCH_FUNCTION;

// caffe2::serialize::PyTorchStreamWriter::writeRecord, which writes a storage into the file of torch.save().
void write_record(void* writer, const std::string& name, const void* data, std::size_t size, bool compress) __asm__(
    "_ZN6caffe29serialize19PyTorchStreamWriter11writeRecordERKNSt7__cxx1112basic_"
    "stringIcSt11char_traitsIcESaIcEEEPKvmb") DEVSAN_TORCH_FUNCTION;

namespace {

constinit LateOperator torch_save{"torch::save"};

constinit PythonLibraryFunction<void*(const at::Tensor&, bool)> real_tensor_to_numpy(
    "_ZN5torch5utils15tensor_to_numpyERKN2at6TensorEb");

class GivingAway {
 public:
  explicit GivingAway(ThreadState& state) noexcept : state_(state), outer_(state.gives_away) {
    state.gives_away = true;
  }
  ~GivingAway() { state_.gives_away = outer_; }
  GivingAway(const GivingAway&) = delete;
  GivingAway& operator=(const GivingAway&) = delete;

 private:
  ThreadState& state_;
  const bool outer_;
};

void* tensor_to_numpy_wrapper(const at::Tensor& tensor, bool force) {
  note_outside_reader(tensor);
  const GivingAway giving(thread_state());
  return real_tensor_to_numpy.get()(tensor, force);
}

void* to_dlpack_wrapper(const at::Tensor& tensor) {
  note_outside_reader(tensor);
  return to_dlpack(tensor);
}

void* to_dlpack_versioned_wrapper(const at::Tensor& tensor) {
  note_outside_reader(tensor);
  return to_dlpack_versioned(tensor);
}

void write_record_wrapper(void* writer, const std::string& name, const void* data, std::size_t size, bool compress) {
  if (attention.load(std::memory_order_relaxed) != 0) note_memory_reader(data, size, torch_save.id());
  write_record(writer, name, data, size, compress);
}

DEVSAN_REPLACEMENTS const Replacement outside_replacements[] = {
    {reinterpret_cast<void*>(&tensor_to_numpy), reinterpret_cast<void*>(&tensor_to_numpy_wrapper), true},
    {reinterpret_cast<void*>(&to_dlpack), reinterpret_cast<void*>(&to_dlpack_wrapper), false, true},
    {reinterpret_cast<void*>(&to_dlpack_versioned), reinterpret_cast<void*>(&to_dlpack_versioned_wrapper), false, true},
    {reinterpret_cast<void*>(&write_record), reinterpret_cast<void*>(&write_record_wrapper)},
};

}  // namespace

}  // namespace devsan::hooks

#include "hooks/inprocess/interpreter/code_table.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string_view>

#include "hooks/inprocess/common/often_read.h"
#include "hooks/inprocess/common/spin_guard.h"
#include "hooks/inprocess/interpreter/python_api.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "trace/words.h"

namespace devsan::hooks {

constinit CodeTable code_table{};
DEVSAN_OFTEN_READ constinit std::atomic<std::uint32_t> CodeTable::generation_{0};

namespace {

using trace::contains;

using Deallocator = void (*)(void*);
Deallocator real_deallocator = nullptr;

// The deallocator's slot lies in the interpreter's data, which some builds make read-only.
bool replace_deallocator(Deallocator replacement) noexcept {
  auto* slot = reinterpret_cast<std::atomic<Deallocator>*>(static_cast<char*>(python.code_type) + kTypeDealloc);
  real_deallocator = slot->load();
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto start = reinterpret_cast<std::uintptr_t>(slot) & ~(page - 1);
  if (real_deallocator == nullptr || ::mprotect(reinterpret_cast<void*>(start), page, PROT_READ | PROT_WRITE) != 0) {
    return false;
  }
  slot->store(replacement);
  return true;
}

}  // namespace

bool CodeTable::start(const char* torch_directory) noexcept {
  torch_directory_ = torch_directory;
  return replace_deallocator(&CodeTable::deallocate_code);
}

void CodeTable::deallocate_code(void* code) {
  code_table.forget(code);
  real_deallocator(code);
}

std::uint32_t CodeTable::classify(const void* code) const noexcept {
  if (code == nullptr || type_of(code) != python.code_type) return kNoCode;
  char file_buffer[512];
  char name_buffer[128];
  const std::string_view file =
      text_of(field<const void*>(code, code_members.filename), file_buffer, sizeof file_buffer);
  const std::string_view name = text_of(field<const void*>(code, code_members.name), name_buffer, sizeof name_buffer);
  if (name == "<interpreter trampoline>") return kNoCode;
  const std::uint32_t marks = marks_of_file(file);
  if ((marks & kTorchCode) == 0) return marks;
  // The innermost frame of an optimizer's operators is one of the functions that step() shares its work among.
  const bool steps = name == "step" || name.starts_with("_single_tensor_") || name.starts_with("_multi_tensor_") ||
                     name.starts_with("_fused_");
  const bool step = steps && contains(file, "/torch/optim/") && !contains(file, "lr_scheduler");
  return marks | (step ? kOptimizerCode : kProgramCode);
}

std::uint32_t CodeTable::marks_of_file(std::string_view file) const noexcept {
  const bool generated = file.starts_with("<eval_with_key>") || contains(file, "/torchinductor_") ||
                         contains(file, "/devsan_simulation/") || file.starts_with("<frozen ") ||
                         file.starts_with("<__array_function__");
  const bool installed = contains(file, "/site-packages/") || contains(file, "/dist-packages/");
  // What the standard library does, it does for who called it: copy.deepcopy, a queue between processes.
  // So do NumPy, which knows no devices, and the decorator by which torch deprecates its functions.
  const bool standard =
      (!installed && (contains(file, "/lib/python3.") || contains(file, "/lib64/python3."))) ||
      (installed && (contains(file, "-packages/numpy/") || contains(file, "-packages/typing_extensions.py")));
  if (file.starts_with(torch_directory_) || generated || standard) return kTorchCode;
  return installed ? kLibraryCode : kProgramCode;
}

std::uint32_t CodeTable::search(const void* code) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(code);
  for (std::uint32_t at = slot_of(address), tries = 0; tries < kMaxProbes; ++tries, at = (at + 1) % kCapacity) {
    const std::uintptr_t entry = entries_[at].load(std::memory_order_acquire);
    if ((entry & ~std::uintptr_t{kAllCodeMarks}) == address) return static_cast<std::uint32_t>(entry & kAllCodeMarks);
    if (entry == 0) break;
  }
  return learn(code);
}

std::uint32_t CodeTable::learn(const void* code) noexcept {
  const std::uint32_t marks = classify(code);
  const auto address = reinterpret_cast<std::uintptr_t>(code);
  const SpinGuard guard(lock_);
  if (!guard.held() || code == nullptr) return marks;
  for (std::uint32_t at = slot_of(address), tries = 0; tries < kMaxProbes; ++tries, at = (at + 1) % kCapacity) {
    const std::uintptr_t entry = entries_[at].load(std::memory_order_relaxed);
    if ((entry & ~std::uintptr_t{kAllCodeMarks}) == address) return marks;
    if (entry != 0 && entry != kGone) continue;
    // A slot further on may hold it already, behind one that was freed since; the second entry dies with the first.
    numbers_[at] = ++last_number_;
    entries_[at].store(address | marks, std::memory_order_release);
    return marks;
  }
  return marks;
}

std::uint32_t CodeTable::number(const void* code) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(code);
  for (std::uint32_t at = slot_of(address), tries = 0; tries < kMaxProbes; ++tries, at = (at + 1) % kCapacity) {
    const std::uintptr_t entry = entries_[at].load(std::memory_order_acquire);
    if ((entry & ~std::uintptr_t{kAllCodeMarks}) == address) return numbers_[at];
    if (entry == 0) break;
  }
  return 0;
}

void CodeTable::forget(const void* code) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(code);
  bool known = false;
  for (std::uint32_t at = slot_of(address), tries = 0; tries < kMaxProbes; ++tries, at = (at + 1) % kCapacity) {
    const std::uintptr_t entry = entries_[at].load(std::memory_order_relaxed);
    if (entry == 0) break;
    if ((entry & ~std::uintptr_t{kAllCodeMarks}) != address) continue;
    entries_[at].store(kGone, std::memory_order_release);
    known = true;
  }
  if (known) generation_.fetch_add(1, std::memory_order_acq_rel);
}

}  // namespace devsan::hooks

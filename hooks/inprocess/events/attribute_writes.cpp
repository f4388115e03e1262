#include "hooks/inprocess/events/attribute_writes.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <string_view>

#include "hooks/inprocess/bridge/tensor_objects.h"
#include "hooks/inprocess/common/busy.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/common/thread_state.h"
#include "hooks/inprocess/interpreter/attribute_hook.h"
#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/code_table.h"
#include "hooks/inprocess/interpreter/own_attributes.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/provenance/device_slots.h"
#include "hooks/inprocess/provenance/sites.h"
#include "hooks/inprocess/provenance/stack.h"
#include "trace/clock.h"

namespace devsan::hooks {

namespace {

// Who wrote an attribute of a class first, and who did last that has been looked at.
struct Writers {
  const void* type;
  const void* name;  // an interned str: equal names are one object
  const void* first_code;
  const void* seen_code;
  std::uint32_t first_number;  // of the code; 0: it was not numbered
  std::int32_t first_instruction;
  std::uint32_t looked_at;
  bool told;
};

constexpr std::size_t kWriters = 1 << 12;
constexpr std::size_t kWriterProbes = 8;
constexpr std::uint32_t kMostLooks = 256;  // at writes of one attribute that overwrote nothing
constinit std::array<Writers, kWriters> writers{};

const void* bool_type = nullptr;
const void* device_type = nullptr;

std::string_view text_in(const void* object, char* buffer, std::size_t size) noexcept {
  return is_text(object) ? text_of(object, buffer, size) : std::string_view();
}

// A number may be an index, also where it is told as a text.
bool may_name_device(const void* value) noexcept {
  if (is_integer(value)) return type_of(value) != bool_type;
  if (type_of(value) == device_type) return true;
  char buffer[16];
  const std::string_view text = text_in(value, buffer, sizeof buffer);
  return text.starts_with("cuda") || text == "cpu";
}

Writers* writers_of(const void* type, const void* name) noexcept {
  const std::uint64_t hash =
      (reinterpret_cast<std::uintptr_t>(type) >> 4 ^ reinterpret_cast<std::uintptr_t>(name)) * 0x9E3779B97F4A7C15u;
  for (std::size_t probe = 0; probe < kWriterProbes; ++probe) {
    Writers& at = writers[(hash >> 52) + probe & (kWriters - 1)];
    if (at.type == type && at.name == name) return &at;
    if (at.type == nullptr) {
      at.type = type;
      at.name = name;
      return &at;
    }
  }
  return nullptr;
}

// "deepspeed" of ".../site-packages/deepspeed/runtime/engine.py"; empty for a file of no package.
std::string_view package_of(std::string_view file) noexcept {
  for (const std::string_view folder : {"/site-packages/", "/dist-packages/"}) {
    const std::size_t at = file.rfind(folder);
    if (at == file.npos) continue;
    const std::string_view rest = file.substr(at + folder.size());
    return rest.substr(0, rest.find_first_of("/."));
  }
  return {};
}

std::string_view file_of(const void* code, char* buffer, std::size_t size) noexcept {
  return text_of(field<const void*>(code, code_members.filename), buffer, size);
}

// Whether the class, or one that it is derived from, is of a package.
bool is_of_package(const void* type, std::string_view package) noexcept {
  char buffer[256];
  for (std::ptrdiff_t k = 0; const void* base = base_at(type, k); ++k) {
    if (!is_heap_type(base)) continue;
    const void* name = dict_entry(field<const void*>(base, kTypeDict), "__module__");
    const std::string_view module = name != nullptr ? text_in(name, buffer, sizeof buffer) : std::string_view();
    if (module.substr(0, module.find('.')) == package) return true;
  }
  return false;
}

// As it is told: a number, or a device.
trace::StringId value_text(const void* value) noexcept {
  char buffer[64];
  if (is_integer(value)) {
    const auto number = integer_in(value);
    std::snprintf(buffer, sizeof buffer, "%ld", number.value_or(0));
    return runtime.recorder->intern_string(buffer);
  }
  if (type_of(value) == device_type) {
    const trace::DeviceSlot slot = device_slot(device_in(value));
    return runtime.recorder->device_name(slot);
  }
  return runtime.recorder->intern_string(text_in(value, buffer, sizeof buffer));
}

bool is_same(const void* one, const void* other) noexcept {
  return one == other || (is_integer(one) && is_integer(other) && integer_in(one) == integer_in(other)) ||
         value_text(one) == value_text(other);
}

// The code of the first writer is still what it was.
bool first_lives(const Writers& known) noexcept {
  return known.first_number != 0 && code_table.number(known.first_code) == known.first_number;
}

// Where a class is written, by its constructor; where it has none of its own, nowhere.
void tell_class(const void* type, trace::AttributeWritePayload& write) noexcept {
  const void* function = dict_entry(field<const void*>(type, kTypeDict), "__init__");
  if (function == nullptr || !is_function(function)) return;
  const void* code = code_of_function(function);
  char buffer[1024];
  write.class_file = runtime.recorder->intern_string(file_of(code, buffer, sizeof buffer));
  write.class_line = code_first_line(code);
}

void tell(Writers& known, const void* frame, const void* old_value, const void* new_value) noexcept {
  known.told = true;
  trace::AttributeWritePayload write{};
  char buffer[256];
  write.time_ns = trace::wall_clock_ns();
  write.step = runtime.step.load(std::memory_order_relaxed);
  write.type = runtime.recorder->intern_string(field<const char*>(known.type, kTypeName));
  write.name = runtime.recorder->intern_string(text_of(known.name, buffer, sizeof buffer));
  write.old_value = value_text(old_value);
  write.new_value = value_text(new_value);
  if (first_lives(known)) write.first = position_of(known.first_code, known.first_instruction);
  const void* code = frame_code(frame);
  write.last = position_of(code, frame_instruction(frame, code));
  tell_class(known.type, write);
  const trace::FrameRecord places[2] = {{write.first, 0, 0}, {write.last, 0, 0}};
  keep_source_lines(places);
  runtime.recorder->add_attribute_write(write);
}

// A library of another package than the class, and than whoever wrote it first, writes what was something else.
void look_at_write(Writers& known, const void* object, const void* frame, const void* value) noexcept {
  const void* code = frame_code(frame);
  if (known.told || ++known.looked_at > kMostLooks || (code_table.marks(code) & kLibraryCode) == 0) {
    known.seen_code = code;
    return;
  }
  char buffer[1024];
  const std::string_view package = package_of(file_of(code, buffer, sizeof buffer));
  const bool own = package.empty() || is_of_package(known.type, package);
  char first_buffer[1024];
  const bool same_writer =
      first_lives(known) && package_of(file_of(known.first_code, first_buffer, sizeof first_buffer)) == package;
  if (own || same_writer) {
    known.seen_code = code;
    return;
  }
  const OwnAttributes attributes(object);
  const void* old_value = attributes ? attributes[text_of(known.name)] : nullptr;
  if (old_value == nullptr || !may_name_device(old_value) || is_same(old_value, value)) return;
  tell(known, frame, old_value, value);
}

void observe(const void* object, const void* name, const void* value) noexcept {
  if (!may_name_device(value) || !runtime.recorder->active()) return;
  const void* thread = python.PyGILState_GetThisThreadState();
  const void* frame = thread != nullptr ? current_frame(thread) : nullptr;
  Writers* known = frame != nullptr ? writers_of(type_of(object), name) : nullptr;
  if (known == nullptr) return;
  const void* code = frame_code(frame);
  if (code == known->first_code || code == known->seen_code) return;
  if (known->first_code == nullptr) {
    code_table.marks(code);  // numbers it
    known->first_code = code;
    known->first_number = code_table.number(code);
    known->first_instruction = frame_instruction(frame, code);
    return;
  }
  ThreadState& state = thread_state();
  if (state.busy) return;
  const PythonSection section;
  const Busy busy(state);
  try {
    look_at_write(*known, object, frame, value);
  } catch (...) {  // short of memory
  }
}

constinit std::atomic<bool> queued{false};
constinit std::atomic<bool> decided{false};

int hook_now(void*) noexcept {
  queued.store(false, std::memory_order_release);
  if (!interpreter_lives()) return 0;
  const PythonSection section;
  const OwnAttributes builtins = attributes_of_module("builtins");
  const OwnAttributes torch = attributes_of_module("torch");
  bool_type = builtins ? builtins["bool"] : nullptr;
  device_type = torch ? torch["device"] : nullptr;
  if (bool_type == nullptr || device_type == nullptr) return 0;
  if (hook_module_attributes(&observe) != AttributeHook::not_yet) decided.store(true, std::memory_order_release);
  return 0;
}

}  // namespace

void watch_attribute_writes() noexcept {
  if (decided.load(std::memory_order_acquire) || !runtime.host->options.placements || !runtime.has_python) return;
  if (!interpreter_lives() || queued.exchange(true, std::memory_order_acq_rel)) return;
  if (python.Py_AddPendingCall(hook_now, nullptr) != 0) queued.store(false, std::memory_order_release);
}

}  // namespace devsan::hooks

#include "hooks/inprocess/interpreter/byte_code.h"

#include <algorithm>
#include <array>
#include <string>

#include "hooks/inprocess/interpreter/own_attributes.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "trace/words.h"

namespace devsan::hooks {

namespace {

using trace::contains;

constexpr std::ptrdiff_t kMaxCodeBytes = 256 * 1024;

// How an instruction's argument names what it works on.
enum class Argument : std::uint8_t {
  none,
  local,
  first_local,
  second_local,
  name,
  global_name,     // from 3.11 on the low bit says something else
  attribute_name,  // so it does from 3.12 on
  cell,
  constant,
  jump_forward,
  jump_backward,
  jump_absolute,
};

struct Step {
  Operation operation = Operation::other;
  Argument argument = Argument::none;
};

struct Meaning {
  std::array<Step, 2> steps;
  int count = 0;
  bool is(Operation operation) const noexcept { return count != 0 && steps[0].operation == operation; }
};

// Every release has jumps of its own, and names them alike.
void add_jump(Meaning& meaning, std::string_view name) noexcept {
  const bool block = name == "SETUP_FINALLY" || name == "SETUP_WITH" || name == "SETUP_ASYNC_WITH";
  const bool loop = name == "FOR_ITER" || name == "SEND";
  if (!contains(name, "JUMP") && !block && !loop) return;
  const bool always = name.starts_with("JUMP") && !contains(name, "_IF_");
  const bool absolute = python.minor == 10 && !block && !loop && name != "JUMP_FORWARD";
  const bool backward = contains(name, "BACKWARD");
  meaning.steps[0] = {always ? Operation::jump : Operation::branch, absolute   ? Argument::jump_absolute
                                                                    : backward ? Argument::jump_backward
                                                                               : Argument::jump_forward};
  meaning.count = 1;
}

// The meaning of each instruction by its number in this interpreter. Not known where `opcode` was never imported; torch
// imports it.
class Opcodes {
 public:
  bool known() const noexcept { return known_; }
  const Meaning& operator[](unsigned char number) const noexcept { return meanings_[number]; }

  Opcodes() noexcept {
    void* module = dict_entry(python.PyImport_GetModuleDict(), "opcode");
    if (module == nullptr || !is_builtin(module, "module")) return;
    const OwnAttributes names(module);
    void* table = names["opmap"];
    if (table != nullptr && is_dict(table)) read(table);
  }

 private:
  void read(void* table) noexcept {
    std::ptrdiff_t at = 0;
    void* key = nullptr;
    void* value = nullptr;
    while (python.PyDict_Next(table, &at, &key, &value) != 0) {
      const long number = is_integer(value) ? code_api().PyLong_AsLong(value) : -1;
      char buffer[64];
      const std::string_view name = text_of(key, buffer, sizeof buffer);
      if (number < 0 || number > 255 || name.empty()) continue;
      Meaning& meaning = meanings_[static_cast<std::size_t>(number)];
      add_jump(meaning, name);
#define DEVSAN_OPCODE(text, operation, argument) \
  if (name == (text)) meaning.steps[meaning.count++] = {Operation::operation, Argument::argument};
#include "hooks/inprocess/interpreter/opcodes.def"
#undef DEVSAN_OPCODE
      known_ = known_ || name == "STORE_FAST";
    }
  }

  std::array<Meaning, 256> meanings_{};
  bool known_ = false;
};

// Read once it can be: before `opcode` is imported nothing is remembered.
const Opcodes& opcodes() noexcept {
  static Opcodes table;
  if (!table.known()) table = Opcodes();
  return table;
}

// A cell's index counts cells alone until 3.10, and all locals later.
const void* cell_name(const void* code, std::ptrdiff_t index) noexcept {
  if (frame_layout.local_names != 0) return code_local_name(code, index);
  const void* cells = code_part(code, code_api().cell_names);
  if (cells == nullptr || !is_tuple(cells)) return nullptr;
  if (index < size_of(cells)) return tuple_entry(cells, index);
  return tuple_entry(code_part(code, code_api().free_names), index - size_of(cells));
}

const void* operand_of(const void* code, Argument argument, int value) noexcept {
  switch (argument) {
    case Argument::local:
      return code_local_name(code, value);
    case Argument::first_local:
      return code_local_name(code, value >> 4);
    case Argument::second_local:
      return code_local_name(code, value & 15);
    case Argument::name:
      return tuple_entry(code_part(code, code_api().names), value);
    case Argument::global_name:
      return tuple_entry(code_part(code, code_api().names), python.minor >= 11 ? value >> 1 : value);
    case Argument::attribute_name:
      return tuple_entry(code_part(code, code_api().names), python.minor >= 12 ? value >> 1 : value);
    case Argument::cell:
      return cell_name(code, value);
    case Argument::constant:
      return tuple_entry(code_constants(code), value);
    case Argument::none:
    case Argument::jump_forward:
    case Argument::jump_backward:
    case Argument::jump_absolute:
      break;
  }
  return nullptr;
}

int target_of(Argument argument, int value, int next) noexcept {
  switch (argument) {
    case Argument::jump_forward:
      return next + 2 * value;
    case Argument::jump_backward:
      return next - 2 * value;
    case Argument::jump_absolute:
      return 2 * value;
    default:
      return -1;
  }
}

// The code's bytes as the compiler wrote them; a new reference.
void* compiled_bytes(const void* code) noexcept {
  const CodeApi& api = code_api();
  return api.PyCode_GetCode != nullptr ? api.PyCode_GetCode(const_cast<void*>(code)) : nullptr;
}

}  // namespace

ByteCode::ByteCode(const void* code) : code_(code) {
  const Opcodes& table = opcodes();
  if (!table.known() || type_of(code) != python.code_type) return;
  void* owned = compiled_bytes(code);
  const void* bytes = owned != nullptr ? owned : code_part(code, code_api().bytes);
  if (bytes == nullptr || !is_bytes(bytes) || size_of(bytes) > kMaxCodeBytes) {
    if (owned != nullptr) python.Py_DecRef(owned);
    return;
  }
  const auto* text = static_cast<const unsigned char*>(bytes) + kBytesText;
  const auto size = static_cast<int>(size_of(bytes)) & ~1;
  int extended = 0;
  for (int at = 0; at < size; at += 2) {
    const Meaning& meaning = table[text[at]];
    const int value = extended << 8 | text[at + 1];
    const bool extends = meaning.is(Operation::extend);
    extended = extends ? value : 0;
    if (extends || meaning.is(Operation::cache)) continue;
    int next = at + 2;
    while (next < size && table[text[next]].is(Operation::cache)) next += 2;
    if (meaning.count == 0) instructions_.push_back({at});
    for (int k = 0; k < meaning.count; ++k) {
      const Step& step = meaning.steps[static_cast<std::size_t>(k)];
      instructions_.push_back(
          {at, step.operation, operand_of(code, step.argument, value), target_of(step.argument, value, next)});
    }
  }
  if (owned != nullptr) python.Py_DecRef(owned);
  read_handlers();
}

// From 3.11 on (until then an instruction sets a handler up, as if it could jump there): groups of four numbers (start,
// length, handler, depth), in six bits a byte, highest first; bit 7 marks a group's first byte, bit 6 one that goes on.
void ByteCode::read_handlers() {
  const void* table = code_part(code_, code_api().exception_table);
  if (table == nullptr || !is_bytes(table)) return;
  const auto* text = static_cast<const unsigned char*>(table) + kBytesText;
  const std::ptrdiff_t size = size_of(table);
  std::ptrdiff_t at = 0;
  const auto number = [&] {
    int value = 0;
    while (at < size) {
      const unsigned char byte = text[at++];
      value = value << 6 | (byte & 63);
      if ((byte & 64) == 0) break;
    }
    return value;
  };
  while (at < size) {
    HandlerRange range;
    range.begin = 2 * number();
    range.end = range.begin + 2 * number();
    range.handler = 2 * number();
    number();  // depth of the stack
    handlers_.push_back(range);
  }
}

int ByteCode::index_at(int offset) const {
  const auto behind = std::upper_bound(instructions_.begin(), instructions_.end(), offset,
                                       [](int at, const Instruction& one) { return at < one.offset; });
  return static_cast<int>(behind - instructions_.begin()) - 1;
}

}  // namespace devsan::hooks

#include "hooks/torch_bridge/schema_operators.h"

#include <ATen/Operators.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <string_view>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/common/spin_guard.h"
#include "hooks/inprocess/events/operator_table.h"

namespace devsan::hooks {

namespace {

// Open addressing by the hash of the name. 64 bits tell any two of a few thousand names apart.
struct Entry {
  std::atomic<std::uint64_t> key;  // stored last; 0 while the entry is free
  SchemaOperator op;
};
constexpr std::size_t kEntries = 1 << 14;
constexpr std::size_t kMostEntries = kEntries / 2;

Entry entries[kEntries];
std::size_t entry_count = 0;
std::atomic<bool> has_wrapped{false};
std::atomic_flag filling = ATOMIC_FLAG_INIT;

std::uint64_t hash(std::uint64_t start, std::string_view text) noexcept {
  for (const char c : text) start = (start ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return start;
}

std::uint64_t key_of(std::string_view name, std::string_view overload) noexcept {
  return hash(hash(hash(0xCBF29CE484222325u, name), "."), overload) | 1;
}

// Where the key is, or would be.
Entry& entry_of(std::uint64_t key) noexcept {
  std::size_t at = key >> 50;
  for (;; at = (at + 1) % kEntries) {
    const std::uint64_t found = entries[at].key.load(std::memory_order_acquire);
    if (found == key || found == 0) return entries[at];
  }
}

const SchemaOperator no_operator;

const SchemaOperator& add(std::uint64_t key, const SchemaOperator& op) noexcept {
  Entry& entry = entry_of(key);
  if (entry.key.load(std::memory_order_relaxed) == key) return entry.op;
  if (entry_count == kMostEntries) return no_operator;
  entry.op = op;
  entry.key.store(key, std::memory_order_release);
  ++entry_count;
  return entry.op;
}

struct WatchedOperator {
  std::string_view name;
  std::string_view overload;
  Watch watch;
};
const WatchedOperator watched_operators[] = {
#define DEVSAN_WATCHED(op, how) {at::_ops::op::name, at::_ops::op::overload_name, Watch::how},
#include "hooks/torch_bridge/watched_operators.def"
#undef DEVSAN_WATCHED
};

Watch watch_of_name(std::string_view name, std::string_view overload) noexcept {
  for (const WatchedOperator& op : watched_operators) {
    if (op.name == name && op.overload == overload) return op.watch;
  }
  return Watch::none;
}

void add_wrapped() noexcept {
  for (std::size_t id = 1;; ++id) {
    const auto op = static_cast<trace::OperatorId>(id);
    const OperatorText* text = operator_text(op);
    if (text == nullptr) break;
    add(key_of(text->name, text->overload), {op, true, is_factory(op), watch_of_name(text->name, text->overload)});
  }
  has_wrapped.store(true, std::memory_order_release);
}

// As is_factory() says it of the wrapped ones.
bool makes_new_values(const c10::FunctionSchema& schema) noexcept {
  bool device = false;
  bool layout = false;
  for (const c10::Argument& argument : schema.arguments()) {
    device = device || argument.name() == "device";
    layout = layout || argument.name() == "pin_memory";
    if (argument.name() == "non_blocking") return false;
  }
  return device && layout;
}

void note_collective(const c10::FunctionSchema& schema, SchemaOperator& op) noexcept {
  op.collective = true;
  const std::string_view name = schema.name();
  op.barrier = name == "c10d::barrier" || name == "c10d::monitored_barrier_";
  op.point_to_point = name == "c10d::send" || name == "c10d::recv_" || name == "c10d::recv_any_source_";
  const std::size_t count = std::min<std::size_t>(schema.arguments().size(), 127);
  for (std::size_t at = 0; at < count; ++at) {
    const std::string_view argument = schema.arguments()[at].name();
    if (argument == "process_group") op.group_at = static_cast<std::int8_t>(at);
    if (argument == "src" || argument == "dst") op.peer_at = static_cast<std::int8_t>(at);
  }
}

}  // namespace

const SchemaOperator& schema_operator(const c10::FunctionSchema& schema) noexcept {
  const std::uint64_t key = key_of(schema.name(), schema.overload_name());
  const Entry* entry = &entry_of(key);
  if (entry->key.load(std::memory_order_acquire) == key) return entry->op;
  const SpinGuard guard(filling);
  if (!guard.held()) return no_operator;
  if (!has_wrapped.load(std::memory_order_acquire)) add_wrapped();
  entry = &entry_of(key);
  if (entry->key.load(std::memory_order_acquire) == key) return entry->op;
  char name[256];
  const std::string& overload = schema.overload_name();
  const int length =
      std::snprintf(name, sizeof name, "%s%s%s", schema.name().c_str(), overload.empty() ? "" : ".", overload.c_str());
  if (length < 0 || static_cast<std::size_t>(length) >= sizeof name) return no_operator;
  SchemaOperator op;
  op.id = runtime.recorder->add_operator({name, static_cast<std::size_t>(length)});
  op.factory = makes_new_values(schema);
  if (is_collective(schema)) note_collective(schema, op);
  return op.id != trace::OperatorId::none ? add(key, op) : no_operator;
}

void reset_schema_operators_after_fork() noexcept {
  filling.clear();
}

}  // namespace devsan::hooks

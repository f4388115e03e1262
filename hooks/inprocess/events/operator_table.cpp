#include "hooks/inprocess/events/operator_table.h"

#include <bitset>
#include <cstdio>
#include <string_view>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/events/halt.h"
#include "hooks/inprocess/interpreter/python_start.h"

// The linker's names for the ends of the sections.
extern "C" {
extern const devsan::Replacement replacements_begin[] __asm__("__start_devsan_replacements")
    __attribute__((visibility("hidden")));
extern const devsan::Replacement replacements_end[] __asm__("__stop_devsan_replacements")
    __attribute__((visibility("hidden")));
extern const devsan::hooks::OperatorText texts_begin[] __asm__("__start_devsan_operator_texts")
    __attribute__((visibility("hidden")));
extern const devsan::hooks::OperatorText texts_end[] __asm__("__stop_devsan_operator_texts")
    __attribute__((visibility("hidden")));
}

namespace devsan::hooks {

namespace {

constexpr std::size_t kMaxOperators = 8192;
const OperatorText* texts_by_id[kMaxOperators];
std::bitset<kMaxOperators> factories;

// A factory takes a device and says how to lay out memory there. So does a conversion, which can be asynchronous.
bool makes_new_values(std::string_view schema) noexcept {
  const auto has = [&](std::string_view part) { return schema.find(part) != schema.npos; };
  return has("Device? device") && has("pin_memory=") && !has("non_blocking=");
}

}  // namespace

const HookTable* hook_table(std::span<const TableEntry> table_entries) noexcept {
  static constinit HookTable table{kHooksAbi, 0, nullptr, nullptr};
  table.replacements = replacements_begin;
  table.count = static_cast<std::uint32_t>(replacements_end - replacements_begin);
  table.table_entries = table_entries.data();
  table.table_entry_count = static_cast<std::uint32_t>(table_entries.size());
  table.status_at_end = [](int status) { return status_with_halt(status, false); };
  table.objects_loaded = [] {
    look_for_torch();
    look_for_python();
  };
  return &table;
}

bool register_operators() noexcept {
  for (const OperatorText* text = texts_begin; text != texts_end; ++text) {
    if (text->name != nullptr && text->id < kMaxOperators) texts_by_id[text->id] = text;
  }
  for (std::size_t id = 1; id < kMaxOperators && texts_by_id[id] != nullptr; ++id) {
    const OperatorText& text = *texts_by_id[id];
    char name[256];
    const bool overloaded = *text.overload != 0;
    const int length = std::snprintf(name, sizeof name, "%s%s%s", text.name, overloaded ? "." : "", text.overload);
    const trace::OperatorId given = runtime.recorder->add_operator({name, static_cast<std::size_t>(length)});
    if (static_cast<std::size_t>(given) != id) return false;
    factories[id] = makes_new_values(text.schema);
  }
  return true;
}

const OperatorText* operator_text(trace::OperatorId op) noexcept {
  const auto id = static_cast<std::size_t>(op);
  return id < kMaxOperators ? texts_by_id[id] : nullptr;
}

bool is_factory(trace::OperatorId op) noexcept {
  const auto id = static_cast<std::size_t>(op);
  return id < kMaxOperators && factories[id];
}

}  // namespace devsan::hooks

// A tensor that was copied to the device where it is missed, and stayed where it was.
#include <algorithm>
#include <string>
#include <unordered_set>
#include <vector>

#include "hooks/inprocess/bridge/copies.h"
#include "hooks/inprocess/bridge/tensor_facts.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/evidence/call_frames.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/factory_text.h"
#include "hooks/inprocess/evidence/waiting_calls.h"
#include "hooks/inprocess/interpreter/byte_code.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/provenance/sites.h"
#include "hooks/inprocess/source/python_calls.h"
#include "hooks/inprocess/source/python_text.h"
#include "hooks/inprocess/source/source_files.h"
#include "trace/function_names.h"

namespace devsan::hooks {

bool by_module(const trace::Site& site) {
  return runtime.recorder->string(site.innermost.file).ends_with("/torch/nn/modules/module.py");
}

namespace {

constexpr std::size_t kMaxLookedAt = 64;

// `self.name = self.alias`: the only line that gives the attribute back what its second name has kept.
std::optional<trace::Position> put_back(const Inquiry& inquiry, const void* name, const void* alias) {
  std::optional<trace::Position> found;
  for (const void* code : inquiry.own_code.code()) {
    if (!mentions(code, name) || !mentions(code, alias)) continue;
    const ByteCode byte_code(code);
    const auto& all = byte_code.instructions();
    for (std::size_t k = 2; k < all.size(); ++k) {
      const bool stores = all[k].operation == Operation::store_attribute && same_name(all[k].operand, name);
      const bool loads = all[k - 2].operation == Operation::load_attribute && same_name(all[k - 2].operand, alias);
      if (!stores || !loads || all[k - 1].operation != Operation::load_variable) continue;
      if (found) return std::nullopt;
      found = position_of(code, all[k].offset);
    }
  }
  return found;
}

std::optional<trace::Position> keeper_at(const Inquiry& inquiry, std::size_t operand, const Holding& holding) {
  const Holding* owner = inquiry.owner_of(operand);
  if (owner != nullptr && owner->holder == holding.holder) {
    if (const auto at = put_back(inquiry, owner->link.name, holding.link.name)) return at;
  }
  return attribute_store(inquiry, operand, holding.holder, holding.link.name);
}

// From a tensor to what holds it: the path is written from there.
struct Way {
  const void* object;
  std::string path;
  Link last{};  // the first step of the path
};

// An attribute that keeps the tensor, by itself or in containers; else all the containers, in `ways`.
bool add_keeping_attribute(const Inquiry& inquiry, std::size_t operand, std::vector<Way>& ways) {
  const void* tensor = ways.front().object;
  std::unordered_set<const void*> seen{tensor};
  for (std::size_t k = 0; k < ways.size() && ways.size() < kMaxLookedAt; ++k) {
    for (const Holding& holding : inquiry.search.holdings_of(ways[k].object)) {
      if (!seen.insert(holding.holder).second && holding.link.kind != LinkKind::attribute) continue;
      const std::string path = written(holding.link) + ways[k].path;
      if (holding.link.kind != LinkKind::attribute) {
        if (is_entry(holding.link.kind)) ways.push_back({holding.holder, path, holding.link});
        continue;
      }
      const bool partial = type_name(holding.holder) == "functools.partial";
      const auto at = partial ? partial_made_at(inquiry, ways[k].last) : keeper_at(inquiry, operand, holding);
      if (!at) continue;
      inquiry.found.add(trace::EvidenceKind::kept_from_before_move, operand, *at,
                        std::string(type_name(holding.holder)) + path);
      return true;
    }
  }
  return false;
}

// A variable that is a view, as `weight = kernel.expand(n, 1, 3, 3)` is, of one that somebody has kept.
void find_keeper_of_base(const Inquiry& inquiry, std::size_t operand) {
  for (const Holding& holding : inquiry.search.holdings_of_base(operand)) {
    std::vector<Way> ways{{holding.object, ""}};
    if (add_keeping_attribute(inquiry, operand, ways)) return;
  }
}

// A module's move makes new tensors of its buffers. Where one of before is a buffer now, somebody has kept it: as an
// attribute, or in containers that an attribute or a variable leads to. Where it is none, a container may keep it.
void find_keeper(const Inquiry& inquiry, std::size_t operand) {
  const void* tensor = inquiry.viewed_by(operand);
  std::vector<Way> ways{{tensor, ""}};
  if (inquiry.search.owner(tensor) == nullptr) {
    const auto put = container_put(inquiry, operand, tensor);
    if (put) return inquiry.found.add(trace::EvidenceKind::kept_from_before_move, operand, *put, "");
    if (!add_keeping_attribute(inquiry, operand, ways)) find_keeper_of_base(inquiry, operand);
    return;
  }
  if (add_keeping_attribute(inquiry, operand, ways)) return;
  for (const Way& way : ways) {
    if (way.object == tensor) continue;
    const std::uint32_t place = inquiry.search.find_place(way.object);
    if (place == kNoPlace || !inquiry.search.is_root(place)) continue;
    const auto binding = binding_at(inquiry, operand, inquiry.search.place(place));
    if (!binding) continue;
    inquiry.found.add(trace::EvidenceKind::kept_from_before_move, operand, binding->at, binding->name + way.path);
    return;
  }
}

// Whether a function returns what it copied on this line: at once, or by the variable that has it.
bool returns_copy(SourceFiles& files, const trace::Position& copied) {
  const SourceLines lines(files.whole(copied.file));
  const std::string statement = statement_at(lines, copied.line);
  if (statement.starts_with("return ")) return true;
  const std::string variable = leading_name(statement);
  const int definition = enclosing_line(lines, copied.line, "def ");
  for (int k = copied.line + 1; definition != 0 && !variable.empty() && k <= lines.count(); ++k) {
    if (!is_blank(lines[k]) && indentation(lines[k]) <= indentation(lines[definition])) break;
    const std::string later = statement_at(lines, k);
    if (later.starts_with("return ") && has_word(later, variable)) return true;
  }
  return false;
}

// `self.to_device(batch)` as a statement of its own, in a function that runs: a call of the function that made the
// copy, whose result is dropped. None where there are several.
void find_dropped(const Inquiry& inquiry, std::size_t operand, const trace::Position& copied) {
  const std::string_view mover = trace::function_around(runtime.recorder->string(copied.function));
  const std::string name(mover.substr(mover.rfind('.') + 1));
  SourceFiles files;
  if (is_running(program_frame(inquiry.innermost), copied) || !returns_copy(files, copied)) return;
  std::optional<trace::Position> found;
  for (const void* frame = program_frame(inquiry.innermost); frame != nullptr; frame = caller_of(frame)) {
    const void* code = frame_code(frame);
    if (!mentions_text(code, name)) continue;
    const ByteCode byte_code(code);
    for (const Instruction& one : byte_code.instructions()) {
      if (!loads_name(one, name)) continue;
      const trace::Position at = position_of(code, one.offset);
      const SourceLines lines(files.whole(at.file));
      const auto call = call_text(statement_at(lines, at.line));
      const std::string_view callee = call ? std::string_view(call->callee) : std::string_view();
      const bool is_call =
          callee == name || (callee.ends_with("." + name) && callee.find_first_of(" =(") == callee.npos);
      if (!is_call) continue;
      if (found && found->line != at.line) return;
      found = at;
    }
  }
  if (found) inquiry.found.add(trace::EvidenceKind::result_dropped_at, operand, *found, name);
}

// `for part in batch: part = part.to(device)`: the copy goes by the name of the loop's variable, which the next turn
// gives away, and what is looped over keeps what it had.
void find_rebound(const Inquiry& inquiry, std::size_t operand, const trace::Position& copied) {
  const auto loop = loop_around(copied);
  if (!loop) return;
  SourceFiles files;
  const SourceLines lines(files.whole(copied.file));
  const std::string statement = statement_at(lines, copied.line);
  const std::string variable = leading_name(statement);
  const std::string head = statement_at(lines, loop->line);
  if (variable.empty() || !assigned_to(statement, variable) || !has_word(loop_targets(head), variable)) return;
  const int end = end_of_block(lines, loop->line, loop->line);
  for (int k = copied.line + 1; k <= end; ++k) {
    if (has_word(lines[k], variable)) return;
  }
  inquiry.found.add(trace::EvidenceKind::rebound_in_loop_at, operand, *loop, variable);
}

// Whether a variable of a frame leads to an operand: it is that, or a container or an object with it.
bool has_operand(const Inquiry& inquiry, std::size_t operand, const void* frame, const std::string& name) {
  WrittenLink variable(name);
  visit_frame(frame, is_module_body(frame_code(frame)), variable);
  std::vector<const void*> objects{inquiry.object_of(operand)};
  for (std::size_t k = 0; k < objects.size() && objects.size() < kMaxLookedAt; ++k) {
    if (objects[k] != nullptr && objects[k] == variable.object()) return true;
    for (const Holding& holding : inquiry.search.holdings_of(objects[k])) {
      if (std::ranges::find(objects, holding.holder) == objects.end()) objects.push_back(holding.holder);
    }
  }
  return false;
}

// The memory of an operand; of a temporary, that of the tensor that it was made from.
const c10::StorageImpl* storage_behind(const Inquiry& inquiry, std::size_t operand) {
  const Sighting& sighting = inquiry.search.sighting(operand);
  const c10::TensorImpl* tensor = sighting.base ? sighting.tensor : inquiry.identities[operand].tensor;
  return tensor != nullptr ? storage_of(tensor) : nullptr;
}

// `moved = to_device(batch)`, and then `report(batch)`, in a function that waits for the latter: the copy was made for
// this function, and it hands on what it was made from.
void find_handed_on(const Inquiry& inquiry, std::size_t operand, const Copy& copy) {
  const std::vector<trace::Position> calls = call_frames(runtime.recorder->site(copy.site).user, copy.calls);
  const void* const innermost = program_frame(inquiry.innermost);
  SourceFiles files;
  for (const void* frame = innermost; frame != nullptr; frame = caller_of(frame)) {
    const trace::Position now = waits_at(frame);
    const auto asked = std::ranges::find_if(calls, [&](const trace::Position& at) { return same_function(at, now); });
    if (asked == calls.end() || asked->line >= now.line) continue;
    if (frame == innermost) return;  // which may use either name
    const SourceLines lines(files.whole(now.file));
    const std::string made = statement_at(lines, asked->line);
    const std::string copied = leading_name(made);
    if (copied.empty() || !assigned_to(made, copied)) return;
    const std::string gives = statement_at(lines, now.line);
    for (const std::string& name : variables_in(*assigned_to(made, copied))) {
      if (name == copied || !has_word(gives, name) || !has_operand(inquiry, operand, frame, name)) continue;
      return inquiry.found.add(trace::EvidenceKind::handed_on_at, operand, now, name + " for " + copied);
    }
    return;
  }
}

}  // namespace

void find_stay(const Inquiry& inquiry, std::size_t operand) {
  const c10::StorageImpl* storage = storage_behind(inquiry, operand);
  const auto stay = storage != nullptr ? find_copy(storage, Copied::nowhere) : std::nullopt;
  if (!stay || stay->device != inquiry.operands[operand].device) return;
  const trace::Position at = runtime.recorder->site(stay->site).user;
  inquiry.found.add(trace::EvidenceKind::stayed_at, operand, at, "");
  find_stay_source(*stay, inquiry.operands[operand].device, operand, inquiry.found);
  find_call_without_device(at, stay->calls, operand, inquiry.found);
}

void find_copied_away(const Inquiry& inquiry, std::size_t operand) {
  const c10::StorageImpl* storage = storage_behind(inquiry, operand);
  if (storage == nullptr) return;
  const auto copy = find_copy(storage, Copied::away);
  if (!copy) return;
  for (const trace::OperandRecord& other : inquiry.operands) {
    if (other.device != copy->device || other.device == inquiry.operands[operand].device) continue;
    const auto& site = runtime.recorder->site(copy->site);
    const bool moved_module = by_module(site);
    inquiry.found.add(moved_module ? trace::EvidenceKind::moved_with_module : trace::EvidenceKind::copied_away, operand,
                      site.user, runtime.recorder->string(runtime.recorder->device_name(copy->device)));
    if (moved_module) {
      find_keeper(inquiry, operand);
    } else {
      find_dropped(inquiry, operand, site.user);
      find_handed_on(inquiry, operand, *copy);
      find_rebound(inquiry, operand, site.user);
    }
    return;
  }
}

// The copy of what an operand was computed from, and the calls that gave that to the functions which run.
void find_source_copied(const Inquiry& inquiry, std::size_t operand) {
  const Ancestor& ancestor = inquiry.search.ancestor(operand);
  if (ancestor.place == kNoPlace || !ancestor.certain || ancestor.storage == nullptr) return;
  const auto copy = find_copy(ancestor.storage, Copied::away);
  if (!copy || !inquiry.is_wanted(operand, copy->device)) return;
  const trace::Site& site = runtime.recorder->site(copy->site);
  if (by_module(site)) return;
  inquiry.found.add(trace::EvidenceKind::source_copied_at, operand, site.user,
                    runtime.recorder->string(runtime.recorder->device_name(copy->device)));
  add_calls_with(inquiry, operand, ancestor.place, trace::EvidenceKind::source_given_at);
}

}  // namespace devsan::hooks

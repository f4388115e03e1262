#include "hooks/inprocess/interpreter/variable_stores.h"

#include <algorithm>
#include <utility>

namespace devsan::hooks {

namespace {

// Walks the ways into an instruction backwards.
class BackwardWalk {
 public:
  BackwardWalk(const ByteCode& code, const void* name)
      : code_(code), name_(name), seen_(code.instructions().size(), false) {
    const auto& all = code.instructions();
    for (std::size_t k = 0; k < all.size(); ++k) {
      if (all[k].target < 0) continue;
      const int to = first_at(all[k].target);
      if (to >= 0 && !leaves_with(to)) jumps_.emplace_back(to, static_cast<int>(k));
    }
    std::ranges::sort(jumps_);
  }

  ReachingStores run(int start) {
    enter(start);
    while (!open_.empty()) {
      const int at = open_.back();
      open_.pop_back();
      if (!visit(code_.instructions()[static_cast<std::size_t>(at)])) continue;
      enter(at);
    }
    std::ranges::sort(result_.offsets);
    return std::move(result_);
  }

 private:
  // Index of the first instruction at or behind an offset: jumps lead to the prefix of a long argument, too.
  int first_at(int offset) const {
    const auto& all = code_.instructions();
    const auto found = std::ranges::lower_bound(all, offset, {}, &Instruction::offset);
    return found == all.end() ? -1 : static_cast<int>(found - all.begin());
  }

  // A `with` block swallows exceptions so seldom that what follows it is taken to come after the whole block.
  bool leaves_with(int handler) const {
    const auto& all = code_.instructions();
    const auto end = std::min(all.size(), static_cast<std::size_t>(handler) + 2);
    for (auto k = static_cast<std::size_t>(handler); k < end; ++k) {
      if (all[k].operation == Operation::with_cleanup) return true;
    }
    return false;
  }

  bool visit(const Instruction& one) {
    switch (one.operation) {
      case Operation::store_variable:
      case Operation::store_cell:
      case Operation::store_global:
        if (!same_name(one.operand, name_)) return true;
        result_.offsets.push_back(one.offset);
        return false;
      case Operation::delete_variable:
        return !same_name(one.operand, name_);
      default:
        return true;
    }
  }

  void open(int index) {
    if (seen_[static_cast<std::size_t>(index)]) return;
    seen_[static_cast<std::size_t>(index)] = true;
    open_.push_back(index);
  }

  // Everything that can run directly before instruction `at`.
  void enter(int at) {
    const auto& all = code_.instructions();
    if (at == 0) result_.from_start = true;
    if (at > 0) {
      const Operation before = all[static_cast<std::size_t>(at) - 1].operation;
      if (before != Operation::jump && before != Operation::stop) open(at - 1);
    }
    const auto first = std::ranges::lower_bound(jumps_, std::pair(at, 0));
    for (auto jump = first; jump != jumps_.end() && jump->first == at; ++jump) open(jump->second);
    for (const HandlerRange& range : code_.handlers()) {
      if (first_at(range.handler) != at || leaves_with(at)) continue;
      for (int k = std::max(first_at(range.begin), 0);
           k < static_cast<int>(all.size()) && all[static_cast<std::size_t>(k)].offset < range.end; ++k) {
        open(k);
      }
    }
  }

  const ByteCode& code_;
  const void* name_;
  std::vector<bool> seen_;
  std::vector<int> open_;
  std::vector<std::pair<int, int>> jumps_;  // to, from
  ReachingStores result_;
};

}  // namespace

ReachingStores stores_reaching(const ByteCode& code, int offset, const void* name) {
  const int start = code.index_at(offset);
  if (start < 0 || name == nullptr) return {};
  return BackwardWalk(code, name).run(start);
}

std::vector<int> all_stores(const ByteCode& code, Operation operation, const void* name) {
  std::vector<int> offsets;
  for (const Instruction& one : code.instructions()) {
    if (one.operation == operation && same_name(one.operand, name)) offsets.push_back(one.offset);
  }
  return offsets;
}

}  // namespace devsan::hooks

// Detects graphs that grow from step to step, by comparing two looks at them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "trace/file_layout.h"

namespace devsan::hooks {

// Of the graph of one tensor of the program.
struct GraphLength {
  trace::StringId name;   // of what holds the tensor
  trace::SiteId made_at;  // that made it
  std::uint32_t nodes;    // of its graph, made by the same site
  std::uint32_t step;     // at which they were counted
};

// One thread at a time.
class GraphLengths {
 public:
  // Forgets what is of another process, the parent. False once a graph was found.
  bool wants_more(std::uint64_t epoch) noexcept {
    if (epoch_ != epoch) {
      count_ = 0;
      found_ = false;
      epoch_ = epoch;
    }
    return !found_;
  }

  // Whether the graph has gained a node in every second step, or more, since it was seen first. What an iteration makes
  // anew, as the unrolled steps of a recurrent network, is as long each time.
  bool grows(const GraphLength& now) noexcept {
    for (std::size_t i = 0; i < count_; ++i) {
      const GraphLength& before = seen_[i];
      if (before.name != now.name || before.made_at != now.made_at) continue;
      const std::uint32_t steps = now.step - before.step;
      found_ = steps >= kLeastSteps && now.nodes > before.nodes && (now.nodes - before.nodes) * 2 >= steps;
      return found_;
    }
    if (count_ < seen_.size()) seen_[count_++] = now;
    return false;
  }

 private:
  static constexpr std::uint32_t kLeastSteps = 4;

  std::array<GraphLength, 32> seen_{};
  std::size_t count_ = 0;
  bool found_ = false;
  std::uint64_t epoch_ = 0;
};

}  // namespace devsan::hooks

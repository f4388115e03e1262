// How many processes and nodes a command asks its launcher for, as far as its words say.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace devsan::launch {

struct JobShape {
  std::string launcher;          // "torchrun"; empty: none that is known
  std::optional<int> processes;  // on this node, of which each takes a device; none: not said
  int nodes = 1;
  std::string config{};  // the file that configures accelerate, whether it is there or not
};

using Variables = std::function<std::optional<std::string>(std::string_view name)>;

// Words behind the name of a program (train.py) are the program's own. Nothing is run, and nothing is read but the
// file that configures accelerate.
JobShape job_shape(const std::vector<std::string>& command, const Variables& variables);

// What an option says: "--name=value", or the next word. `name` is written with hyphens; in the words they may be
// underscores.
std::optional<std::string> value_of(std::span<const std::string> words, std::string_view name);

// As many devices as the list in CUDA_VISIBLE_DEVICES needs, so that each number in it is one.
int devices_for_visible(std::string_view list);

}  // namespace devsan::launch

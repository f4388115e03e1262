// What kind of statement a source line is, as far as it can be told without Python. A line that is part of a longer
// statement, or that is not understood, is none.
#pragma once

#include <optional>
#include <string_view>

namespace devsan::report {

// "self.bias = torch.ones(3)  # why": the target and the value, without the comment.
struct AssignmentText {
  std::string_view target;
  std::string_view value;
};

// The line without indentation and comment; empty where a string or bracket is left open.
std::string_view statement_of(std::string_view line);
// A plain assignment to one target; annotations belong to the target and are left out. None for `x += 1` and `a = b =
// c`.
std::optional<AssignmentText> split_assignment(std::string_view line);
// What an assignment gives to one of its targets: "net" for "self.net" of "self.a, self.net = a.eval(), net". Empty
// where that cannot be told.
std::string_view value_given(std::string_view line, std::string_view target);
// Keeps something in a list or dict: `masks[key] = …`.
bool stores_entry(std::string_view line);
// Something is taken out of a container, or gets a second name, and nothing is computed: `x = batch["x"]`,
// `x, y = batch`, `tokens = prompt`, `for x, y in loader:`.
bool only_takes_apart(std::string_view line);

// A function hands back what it was given, moved or converted, and computes nothing: `return x.detach().cpu()`,
// `return {k: v.to(device) for k, v in batch.items()}`.
bool only_hands_back_moved(std::string_view line);

}  // namespace devsan::report

// Source for tests of report/program, and the nodes in it that a test means.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "report/program/definitions.h"
#include "report/program/flow.h"
#include "report/program/positions.h"
#include "report/program/source_file.h"

namespace devsan::program {

// The expression with this text; the `which`th of those in the file, from 0. The innermost node of equal ranges.
inline Node find(const SourceFile& file, std::string_view text, int which = 0) {
  Node found;
  for (std::uint32_t at = 0; at < file.size(); ++at) {
    const Node node = file.node(at);
    if (node.kind() == Kind::Token || node.text() != text) continue;
    const bool same = found && found.contains(node) && found.begin_byte() == node.begin_byte();
    if (!same && found && which-- == 0) return found;
    found = node;
  }
  if (!found || which != 0) throw std::runtime_error("no such expression: " + std::string(text));
  return found;
}

inline std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : "; ") + part;
  return text;
}

// The statements that can have given the variable its value, from the nearest: "3 x = f(); 1 x = g()". "…" at the end
// where it may be from before.
inline std::string reaching(const SourceFile& file, Node use) {
  const Reaching found = file.flow().reaching(use);
  std::vector<std::string> parts;
  for (const Reached& each : found.definitions) {
    const Node target = each.definition->target;
    parts.push_back(std::to_string(target.line()) + (each.overlap == Overlap::Perhaps ? "? " : " ") +
                    each.definition->variable.text());
  }
  if (found.from_entry) parts.push_back("…");
  return joined(parts);
}

}  // namespace devsan::program

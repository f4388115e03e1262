// A loop that moves a model parameter by parameter, as `for p in net.parameters(): p.data = p.data.to(device)` does:
// buffers are not among those, nor are parameters that it does not come to, or chooses not to take.
#include <optional>
#include <string>
#include <vector>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/module_weights.h"
#include "hooks/inprocess/source/python_text.h"
#include "hooks/inprocess/source/source_files.h"

namespace devsan::hooks {

namespace {

// Where the program brought a weight to its device itself, and no module's method did.
std::optional<trace::Position> own_move_of(const c10::TensorImpl& weight) {
  const auto move = newest_move_of(weight);
  if (!move) return std::nullopt;
  const trace::Site site = runtime.recorder->site(move->site);
  return by_module(site) ? std::nullopt : std::optional(site.user);
}

// The one line that moved all weights of a model that are where the operand is missed.
std::optional<trace::Position> move_of_all(const Inquiry& inquiry, std::size_t operand, const void* root) {
  std::optional<trace::Position> found;
  bool together = true;
  visit_weights(inquiry.search, root, [&](const c10::TensorImpl& weight) {
    if (!inquiry.is_wanted(operand, device_slot_of(&weight))) return true;
    const auto moved = own_move_of(weight);
    together = moved && (!found || same_line(*found, *moved));
    found = moved;
    return together;
  });
  return together ? found : std::nullopt;
}

bool goes_through_parameters(const SourceLines& lines, int loop, int moved) {
  return statement_at(lines, loop).find("parameters(") != std::string::npos ||
         statement_at(lines, moved).find(".data") != std::string::npos;
}

// The `if` in the loop that chooses what is moved; the loop, where there is none.
int choice_in(const SourceLines& lines, int loop, int moved) {
  const int condition = enclosing_line(lines, moved, "if ");
  return condition > loop ? condition : loop;
}

}  // namespace

void find_moved_parameters(const Inquiry& inquiry, std::size_t operand) {
  const std::vector<const Holding*> owners = inquiry.owners_of(operand);
  if (owners.empty()) return;
  const void* root = owners.back()->holder;
  const auto moved = move_of_all(inquiry, operand, root);
  const auto loop = moved ? loop_around(*moved) : std::nullopt;
  if (!loop) return;
  SourceFiles files;
  const SourceLines lines(files.whole(moved->file));
  if (!goes_through_parameters(lines, loop->line, moved->line)) return;
  const bool buffer = owners.front()->link.kind == LinkKind::buffer;
  const int line = buffer ? loop->line : choice_in(lines, loop->line, moved->line);
  inquiry.found.add(trace::EvidenceKind::parameters_moved_at, operand,
                    position_at(moved->file, line, qualified_function(lines, line)), type_name(root));
}

}  // namespace devsan::hooks

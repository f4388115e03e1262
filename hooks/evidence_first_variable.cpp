// Where the program got hold of data that some other function made: the first of its variables that had them.
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "hooks/evidence.h"
#include "hooks/python_frames.h"
#include "hooks/python_text.h"
#include "hooks/source_files.h"
#include "hooks/tensor_fields.h"
#include "hooks/waiting_calls.h"

namespace devsan::hooks {

namespace {

constexpr std::size_t kMaxFrames = 24;

// The variables of a frame that are tensors over some memory.
class VariablesOver final : public LinkVisitor {
 public:
  VariablesOver(const ObjectSearch& search, const void* frame, const std::unordered_set<const void*>& storages)
      : search_(search), frame_(frame), storages_(storages) {
    visit_frame(frame, is_module_body(frame_code(frame)), *this);
  }
  const std::vector<Place>& found() const { return found_; }

  bool link(const Link& link, void* object) override {
    const c10::TensorImpl* tensor = link.name != nullptr ? search_.tensor_at(object) : nullptr;
    if (tensor != nullptr && storages_.contains(TensorFields::storage(tensor))) {
      found_.push_back({object, link, kNoPlace, 0, frame_});
    }
    return true;
  }

 private:
  const ObjectSearch& search_;
  const void* frame_;
  const std::unordered_set<const void*>& storages_;
  std::vector<Place> found_;
};

std::unordered_set<const void*> storages_of(const Inquiry& inquiry, std::size_t operand) {
  std::unordered_set<const void*> storages;
  const c10::TensorImpl* tensor = inquiry.identities[operand].tensor;
  if (tensor != nullptr) storages.insert(TensorFields::storage(tensor));
  const Sighting& sighting = inquiry.search.sighting(operand);
  if (sighting.base && sighting.tensor != nullptr) storages.insert(TensorFields::storage(sighting.tensor));
  const Ancestor& ancestor = inquiry.search.ancestor(operand);
  if (ancestor.certain) storages.insert(ancestor.storage);
  storages.erase(nullptr);
  return storages;
}

// Where the first of them got its value; none where one got it in more than one place.
std::optional<Binding> first_of(const Inquiry& inquiry, std::size_t operand, const std::vector<Place>& variables) {
  std::optional<Binding> first;
  for (const Place& variable : variables) {
    auto binding = binding_at(inquiry, operand, variable);
    if (!binding) return std::nullopt;
    if (!first || binding->at.line < first->at.line) first = std::move(binding);
  }
  return first;
}

// Something over the memory, or that keeps such a tensor: a batch.
class Keeps final : public LinkVisitor {
 public:
  Keeps(const ObjectSearch& search, void* object, const std::unordered_set<const void*>& storages)
      : search_(search), storages_(storages) {
    link({}, object);
    if (!found_ && object != nullptr && !is_torch_module(object) && leads_on(object)) visit_links(object, *this);
  }
  bool found() const { return found_; }
  bool link(const Link&, void* object) override {
    const c10::TensorImpl* tensor = object != nullptr ? search_.tensor_at(object) : nullptr;
    found_ = found_ || (tensor != nullptr && storages_.contains(TensorFields::storage(tensor)));
    return !found_;
  }

 private:
  const ObjectSearch& search_;
  const std::unordered_set<const void*>& storages_;
  bool found_ = false;
};

// `for batch in loader: inputs = batch.inputs[:, :-1]`: the line takes it out of what the loop has drawn.
void find_loop(const Inquiry& inquiry, std::size_t operand, const void* frame, const trace::Position& taken,
               const std::unordered_set<const void*>& storages) {
  const auto loop = loop_around(taken);
  if (!loop) return;
  SourceFiles files;
  const SourceLines lines(files.whole(taken.file));
  const std::string head = statement_at(lines, loop->line);
  const std::size_t in = head.find(" in ");
  const std::string statement = statement_at(lines, taken.line);
  std::string_view targets = std::string_view(head).substr(0, std::min(in, head.size()));
  targets.remove_prefix(std::min(targets.size(), std::string_view("for ").size()));
  while (!targets.empty()) {
    const std::size_t end = std::min(targets.find_first_of(" ,()"), targets.size());
    const std::string_view name = targets.substr(0, end);
    targets.remove_prefix(std::min(end + 1, targets.size()));
    if (!is_identifier(name) || !has_word(statement, name)) continue;
    WrittenLink variable(name);
    visit_frame(frame, is_module_body(frame_code(frame)), variable);
    if (!Keeps(inquiry.search, variable.object(), storages).found()) continue;
    inquiry.found.add(trace::EvidenceKind::taken_in_loop_at, operand, *loop, name);
    return;
  }
}

}  // namespace

void find_first_variable(const Inquiry& inquiry, std::size_t operand) {
  const auto storages = storages_of(inquiry, operand);
  if (storages.empty()) return;
  std::vector<const void*> frames;
  for (const void* frame = program_frame(inquiry.innermost); frame != nullptr && frames.size() < kMaxFrames;
       frame = caller_of(frame)) {
    frames.push_back(frame);
  }
  for (const void* frame : frames | std::views::reverse) {
    const VariablesOver variables(inquiry.search, frame, storages);
    if (variables.found().empty()) continue;
    if (const auto first = first_of(inquiry, operand, variables.found())) {
      inquiry.found.add(trace::EvidenceKind::first_bound_at, operand, first->at, first->name);
      find_loop(inquiry, operand, frame, first->at, storages);
    }
    return;
  }
}

}  // namespace devsan::hooks

// Where the program got hold of data that some other function made: the first of its variables that had them.
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/loader_site.h"
#include "hooks/inprocess/evidence/waiting_calls.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/source/python_text.h"
#include "hooks/inprocess/source/source_files.h"

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
    if (tensor != nullptr && storages_.contains(storage_of(tensor))) {
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
  if (tensor != nullptr) storages.insert(storage_of(tensor));
  const Sighting& sighting = inquiry.search.sighting(operand);
  if (sighting.base && sighting.tensor != nullptr) storages.insert(storage_of(sighting.tensor));
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
    found_ = found_ || (tensor != nullptr && storages_.contains(storage_of(tensor)));
    return !found_;
  }

 private:
  const ObjectSearch& search_;
  const std::unordered_set<const void*>& storages_;
  bool found_ = false;
};

// The variable among the targets of a loop or assignment that a statement mentions, where it keeps such a tensor.
class DrawnVariable final : public LinkVisitor {
 public:
  DrawnVariable(const ObjectSearch& search, const void* frame, const std::unordered_set<const void*>& storages,
                std::string_view targets, std::string_view statement)
      : search_(search), storages_(storages), targets_(targets), statement_(statement) {
    visit_frame(frame, is_module_body(frame_code(frame)), *this);
  }
  const std::string& name() const { return name_; }

  bool link(const Link& link, void* object) override {
    if (link.name == nullptr) return true;
    char buffer[256];
    const std::string_view name = text_of(link.name, buffer, sizeof buffer);
    const bool mentioned = has_word(targets_, name) && has_word(statement_, name);
    if (mentioned && Keeps(search_, object, storages_).found()) name_ = name;
    return name_.empty();
  }

 private:
  const ObjectSearch& search_;
  const std::unordered_set<const void*>& storages_;
  std::string_view targets_;
  std::string_view statement_;
  std::string name_;
};

// `for batch in loader: inputs = batch.inputs[:, :-1]`: the line takes it out of what the loop has drawn.
void find_loop(const Inquiry& inquiry, std::size_t operand, const void* frame, const trace::Position& taken,
               const std::unordered_set<const void*>& storages) {
  const auto loop = loop_around(taken);
  if (!loop) return;
  SourceFiles files;
  const SourceLines lines(files.whole(taken.file));
  const std::string head = statement_at(lines, loop->line);
  const std::string statement = statement_at(lines, taken.line);
  const DrawnVariable drawn(inquiry.search, frame, storages, loop_targets(head), statement);
  if (!drawn.name().empty()) {
    inquiry.found.add(trace::EvidenceKind::taken_in_loop_at, operand, *loop, drawn.name());
  }
}

// `for batch in loader: loss = model(**batch)`: the loop that has drawn what keeps it.
void find_drawn_container(const Inquiry& inquiry, std::size_t operand, const void* frame,
                          const std::unordered_set<const void*>& storages) {
  SourceFiles files;
  for (auto loop = loop_around(waits_at(frame)); loop; loop = loop_around(*loop)) {
    const std::string head = statement_at(SourceLines(files.whole(loop->file)), loop->line);
    const DrawnVariable drawn(inquiry.search, frame, storages, loop_targets(head), head);
    if (drawn.name().empty()) continue;
    inquiry.found.add(trace::EvidenceKind::drawn_within_at, operand, *loop, drawn.name());
    return;
  }
}

// `batch, index, _ = next(batches)`: a variable that keeps what was drawn by hand.
void find_drawn_by_hand(const Inquiry& inquiry, std::size_t operand, const void* frame,
                        const std::unordered_set<const void*>& storages) {
  SourceFiles files;
  const trace::Position waits = waits_at(frame);
  const SourceLines lines(files.whole(waits.file));
  const int definition = enclosing_line(lines, waits.line, "def ");
  for (int line = waits.line - 1; line > definition && definition != 0; --line) {
    if (call_in(lines[line], "next") == std::string_view::npos) continue;
    const std::string statement = statement_at(lines, line);
    const std::size_t equals = statement.find(" = ");
    if (equals == statement.npos || call_in(statement, "next") != equals + 3) continue;
    const DrawnVariable drawn(inquiry.search, frame, storages, statement.substr(0, equals), statement);
    if (drawn.name().empty()) continue;
    inquiry.found.add(trace::EvidenceKind::drawn_within_at, operand,
                      position_at(waits.file, line, qualified_function(lines, line)), drawn.name());
    return;
  }
}

// Those of the program that run, the innermost first.
std::vector<const void*> program_frames(const Inquiry& inquiry) {
  std::vector<const void*> frames;
  for (const void* frame = program_frame(inquiry.innermost); frame != nullptr && frames.size() < kMaxFrames;
       frame = caller_of(frame)) {
    frames.push_back(frame);
  }
  return frames;
}

}  // namespace

void find_drawn_loader(const Inquiry& inquiry, std::size_t operand) {
  std::vector<trace::StringId> files;
  for (const void* frame : program_frames(inquiry)) files.push_back(waits_at(frame).file);
  const auto made = loader_made_at(inquiry.operands[operand], files);
  if (made) inquiry.found.add(trace::EvidenceKind::drawn_loader_made_at, operand, *made, "");
}

void find_first_variable(const Inquiry& inquiry, std::size_t operand) {
  const auto storages = storages_of(inquiry, operand);
  if (storages.empty()) return;
  const std::vector<const void*> frames = program_frames(inquiry);
  for (const void* frame : frames | std::views::reverse) {
    find_drawn_container(inquiry, operand, frame, storages);
    find_drawn_by_hand(inquiry, operand, frame, storages);
    const VariablesOver variables(inquiry.search, frame, storages);
    if (variables.found().empty()) continue;
    if (const auto first = first_of(inquiry, operand, variables.found())) {
      inquiry.found.add(trace::EvidenceKind::first_bound_at, operand, first->at, first->name);
      find_twin_of_binding(inquiry, operand, first->at);
      find_loop(inquiry, operand, frame, first->at, storages);
    }
    return;
  }
}

}  // namespace devsan::hooks

#include "hooks/inprocess/snapshot/facts.h"

#include <cstdint>
#include <string_view>
#include <unordered_set>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/code_table.h"
#include "hooks/inprocess/interpreter/frame_marks.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/snapshot/fact_bounds.h"
#include "hooks/inprocess/snapshot/fact_graph.h"
#include "hooks/inprocess/snapshot/fact_sources.h"
#include "trace/clock.h"

namespace devsan::hooks {

namespace {

using trace::FactLinkKind;
using trace::ObjectKind;
using trace::VariableKind;

// Which globals of a module are recorded of their own accord.
enum class GlobalsWanted {
  of_program,  // all but modules, torch's functions, and what other programs define
  of_library,  // what has to do with devices
};

// Of this thread alone: what the machine does besides is no cost of this.
std::int64_t processor_microseconds() noexcept {
  return trace::clock_ns(CLOCK_THREAD_CPUTIME_ID) / 1000;
}

bool is_dunder(std::string_view name) noexcept {
  return name.starts_with("__");
}

class Gatherer {
 public:
  Gatherer(const ObjectSearch& search, std::span<const trace::OperandRecord> records,
           std::span<const OperandIdentity> identities)
      : search_(search), identities_(identities), graph_(records, identities) {}

  Facts gather(const void* innermost, const void* waited_for) {
    add_ways();
    add_variables(innermost, false);
    if (waited_for != nullptr) add_other_threads(waited_for);
    add_variables(innermost, true);
    add_globals(innermost, true);
    graph_.follow();
    add_globals(innermost, false);
    graph_.follow();
    connect_ways();
    Facts facts;
    facts.objects = graph_.objects();
    facts.links = graph_.links();
    facts.variables = std::move(variables_);
    facts.copies = graph_.copies();
    if (graph_.cut() || cut_) facts.fixed.flags = trace::kFactsCut;
    return facts;
  }

 private:
  // The operands, and all that the search came through on its way to them.
  void add_ways() {
    for (std::size_t k = 0; k < identities_.size(); ++k) {
      for (const std::uint32_t place : way_to(search_.sighting(k).place)) graph_.add(search_.place(place).object, {});
      const OperandIdentity& known = identities_[k];
      if (known.tensor != nullptr) {
        graph_.add_tensor(known.tensor, const_cast<void*>(known.object));
      } else if (known.object != nullptr) {
        graph_.add(const_cast<void*>(known.object), {});
      }
    }
  }

  // A bounded walk has passed some of these links by.
  void connect_ways() {
    for (std::size_t k = 0; k < identities_.size(); ++k) {
      for (const std::uint32_t index : way_to(search_.sighting(k).place)) {
        const Place& place = search_.place(index);
        if (search_.is_root(index)) {
          keep_variable(place);
          continue;
        }
        const Place& holder = search_.place(place.parent);
        connect(holder.object, place);
      }
    }
  }

  void connect(void* holder, const Place& place) {
    if (place.link.kind == LinkKind::key && place.link.name == nullptr) return connect_by_key(holder, place);
    graph_.connect(graph_.find(holder), graph_.find(place.object), as_fact(place.link));
  }

  // An entry by a key that is no str: told again as visit_fact_links() tells it.
  void connect_by_key(void* holder, const Place& place) {
    class OneEntry final : public FactLinkVisitor {
     public:
      OneEntry(FactGraph& graph, void* holder, const void* wanted) : graph_(graph), holder_(holder), wanted_(wanted) {}
      bool link(const FactLink& link, void* object, const c10::TensorImpl*) override {
        if (object != wanted_) return true;
        graph_.connect(graph_.find(holder_), graph_.find(object), link);
        return false;
      }

     private:
      FactGraph& graph_;
      void* holder_;
      const void* wanted_;
    } visitor(graph_, holder, place.object);
    visit_fact_links(holder, ObjectKind::dict, nullptr, graph_.describer(), visitor);
  }

  // From the variable inwards; empty where the operand was not found.
  std::vector<std::uint32_t> way_to(std::uint32_t place) const {
    std::vector<std::uint32_t> way;
    if (place == kNoPlace) return way;
    for (;; place = search_.place(place).parent) {
      way.insert(way.begin(), place);
      if (search_.is_root(place)) return way;
    }
  }

  void add_variable(std::uint16_t frame, VariableKind kind, const Link& link, std::uint16_t object) {
    if (object == kNoFact) return;
    if (variables_.size() >= kMaxFactVariables) {
      cut_ = true;
      return;
    }
    variables_.push_back({frame, object, name_of(as_fact(link)), kind, {}});
  }

  // Records the variables of a frame.
  class FrameVisitor final : public LinkVisitor {
   public:
    FrameVisitor(Gatherer& into, std::uint16_t frame) : into_(into), frame_(frame) {}
    bool link(const Link& link, void* object) override {
      if (link.kind != LinkKind::local) return false;
      const VariableKind kind = link.cell ? VariableKind::cell : VariableKind::local;
      into_.add_variable(frame_, kind, link, into_.graph_.add(object, as_fact(link)));
      return true;
    }

   private:
    Gatherer& into_;
    std::uint16_t frame_;
  };

  void add_variables(const void* innermost, bool torch_frames) {
    const std::size_t limit = torch_frames ? variables_.size() + kMaxTorchVariables : kMaxFactVariables;
    std::size_t count = 0;
    for (const void* frame = innermost; frame != nullptr && count < kMaxFactFrames; frame = frame_previous(frame)) {
      if (!has_code(frame)) continue;
      const auto index = static_cast<std::uint16_t>(count++);
      if (index_of_.size() < count) index_of_.push_back(frame);
      if (is_torch_code(frame) != torch_frames || variables_.size() >= limit) continue;
      FrameVisitor visitor(*this, index);
      if (!is_module_body(frame_code(frame))) visit_frame(frame, false, visitor);
    }
  }

  // The functions of the program that wait for this thread, which is one of autograd's.
  void add_other_threads(const void* thread) {
    for_other_threads(thread, [this](const void* frame) {
      for (std::size_t count = 0; frame != nullptr && count < kMaxFactFrames; frame = frame_previous(frame), ++count) {
        if (!has_code(frame) || is_torch_code(frame)) continue;
        FrameVisitor visitor(*this, trace::kNoFrame);
        visit_frame(frame, false, visitor);
      }
      return true;
    });
  }

  // Globals of the modules whose functions run; with `first` those that say something by themselves, else those that
  // lead to what is recorded, or that a program has set for its own use.
  void add_globals(const void* innermost, bool first) {
    std::unordered_set<const void*> seen;
    for (const void* frame = innermost; frame != nullptr; frame = frame_previous(frame)) {
      if (!has_code(frame) || is_torch_code(frame)) continue;
      const void* dict = frame_reference(frame, frame_layout.globals);
      if (dict == nullptr || !is_dict(dict) || !seen.insert(dict).second) continue;
      const bool library = (code_table.marks(frame_code(frame)) & kLibraryCode) != 0;
      add_module_globals(dict, index_of(frame), library ? GlobalsWanted::of_library : GlobalsWanted::of_program, first);
    }
  }

  std::uint16_t index_of(const void* frame) const {
    for (std::size_t k = 0; k < index_of_.size(); ++k) {
      if (index_of_[k] == frame) return static_cast<std::uint16_t>(k);
    }
    return trace::kNoFrame;
  }

  void add_module_globals(const void* dict, std::uint16_t frame, GlobalsWanted wanted, bool first) {
    std::ptrdiff_t at = 0;
    void* key = nullptr;
    void* value = nullptr;
    std::size_t added = 0;
    while (python.PyDict_Next(const_cast<void*>(dict), &at, &key, &value) != 0 && added < kMaxGlobals) {
      char buffer[256];
      if (value == nullptr || key == nullptr || !is_text(key)) continue;
      if (is_dunder(text_of(key, buffer, sizeof buffer)) || says_something(value, wanted) != first) continue;
      Link link{LinkKind::global, 0, key};
      const bool whole = first || (wanted == GlobalsWanted::of_program && is_of_use(value));
      const std::uint16_t object = whole ? graph_.add(value, as_fact(link)) : graph_.find(value);
      if (object == kNoFact) continue;
      add_variable(frame, VariableKind::global, link, object);
      ++added;
    }
  }

  // Devices, tensors, modules, and functions and classes of the program.
  bool says_something(const void* object, GlobalsWanted wanted) {
    if (graph_.describer().tensor_at(object) != nullptr) return true;
    const ObjectKind kind = is_type(object) ? ObjectKind::class_object : graph_.describer().type(type_of(object)).kind;
    switch (kind) {
      case ObjectKind::device:
      case ObjectKind::generator:
      case ObjectKind::module:
      case ObjectKind::optimizer:
        return true;
      case ObjectKind::function:
        return wanted == GlobalsWanted::of_program && is_program_code(code_of_function(object));
      case ObjectKind::class_object: {
        const void* function = wanted == GlobalsWanted::of_program ? function_of_class(object) : nullptr;
        return function != nullptr && is_program_code(code_of_function(function));
      }
      default:
        return false;
    }
  }

  static bool is_program_code(const void* code) noexcept {
    return (code_table.classify(code) & (kNoCode | kTorchCode | kLibraryCode)) == 0;
  }

  // What a program keeps for its functions: settings, tables, objects of its own. Not what it has imported.
  bool is_of_use(const void* object) {
    const ObjectKind kind = is_type(object) ? ObjectKind::class_object : graph_.describer().type(type_of(object)).kind;
    const bool imported = kind == ObjectKind::python_module || kind == ObjectKind::function ||
                          kind == ObjectKind::class_object || is_builtin(object, "builtin_function_or_method");
    return !imported;
  }

  // The variable that a way begins with, where there was no room for it, or its module was passed over.
  void keep_variable(const Place& place) {
    const bool global = place.link.kind == LinkKind::global;
    const std::uint16_t object = graph_.find(place.object);
    const std::uint16_t frame = index_of(place.frame);
    const trace::StringId name = name_of(as_fact(place.link));
    for (const trace::VariableFact& one : variables_) {
      if (one.object == object && one.name == name && (one.frame == frame || global)) return;
    }
    if (object == kNoFact || variables_.size() >= kMaxFactVariables + identities_.size()) return;
    const VariableKind local = place.link.cell ? VariableKind::cell : VariableKind::local;
    variables_.push_back({frame, object, name, global ? VariableKind::global : local, {}});
  }

  const ObjectSearch& search_;
  std::span<const OperandIdentity> identities_;
  FactGraph graph_;
  std::vector<trace::VariableFact> variables_;
  std::vector<const void*> index_of_;  // frames by their numbers in the meeting
  bool cut_ = false;
};

}  // namespace

Facts gather_facts(const ObjectSearch& search, const void* innermost, const void* waited_for,
                   std::span<const trace::OperandRecord> records, std::span<const OperandIdentity> identities) {
  const std::int64_t begin = processor_microseconds();
  Facts facts = Gatherer(search, records, identities).gather(innermost, waited_for);
  facts.fixed.microseconds = static_cast<std::uint32_t>(processor_microseconds() - begin);
  return facts;
}

void record_facts(const trace::MeetingPayload& meeting, const Facts& facts) noexcept {
  if (!facts.objects.empty()) {
    runtime.recorder->add_facts(&meeting, facts.fixed, facts.objects, facts.links, facts.variables, facts.copies);
  }
  record_sources(meeting, facts.objects);
}

}  // namespace devsan::hooks

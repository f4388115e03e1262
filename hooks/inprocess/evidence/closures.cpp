// A module that was copied together with a function which means the original. Copies of functions are the functions
// themselves, so one that means its module by a closure, or by a default argument, means the original in every copy of
// that module.
#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/module_weights.h"
#include "hooks/inprocess/evidence/waiting_calls.h"
#include "hooks/inprocess/interpreter/python_api.h"
#include "hooks/inprocess/provenance/lineage_nodes.h"
#include "hooks/inprocess/provenance/sites.h"
#include "hooks/inprocess/source/code_names.h"

namespace devsan::hooks {

namespace {

constexpr int kMaxFrames = 24;
constexpr int kMaxWrapped = 3;
constexpr std::size_t kMaxModules = 2000;

struct KeptFunction {
  const void* module;
  Link attribute;
  const void* function;
};

// The modules at and below one, and the functions that they keep as attributes, or in a list or dictionary of theirs.
class KeptFunctions final : public LinkVisitor {
 public:
  explicit KeptFunctions(const void* root) : modules_(modules_below(root, kMaxModules)) {
    for (const void* module : modules_) {
      module_ = module;
      visit_links(const_cast<void*>(module), *this);
    }
  }
  const std::vector<KeptFunction>& all() const { return all_; }
  bool has_module(const void* object) const { return std::ranges::find(modules_, object) != modules_.end(); }
  bool has_function(const void* function) const {
    return std::ranges::find(all_, function, &KeptFunction::function) != all_.end();
  }

  bool link(const Link& link, void* object) override {
    if (link.kind == LinkKind::child) return true;
    const bool entry = is_entry(link.kind);
    if (!entry) attribute_ = link;
    if (is_function(object)) all_.push_back({module_, attribute_, object});
    if (!entry && link.kind == LinkKind::attribute && is_container(object)) visit_links(object, *this);
    return true;
  }

 private:
  const std::vector<const void*> modules_;
  const void* module_ = nullptr;
  Link attribute_{};
  std::vector<KeptFunction> all_;
};

// The modules that a function means: by what it closes over, by a default argument, by a method of theirs, or by a
// function that it wraps.
class MeantModules final : public LinkVisitor {
 public:
  explicit MeantModules(const void* function) { look_at(function, 0); }
  const std::vector<const void*>& all() const { return all_; }

  bool link(const Link& link, void* object) override {
    if (link.kind == LinkKind::closure) add(object);
    return true;
  }

 private:
  void look_at(const void* function, int depth) {
    depth_ = depth;
    visit_links(const_cast<void*>(function), *this);
    depth_ = depth;
    const void* defaults = code_api().PyFunction_GetDefaults(const_cast<void*>(function));
    for (std::ptrdiff_t k = 0; const void* value = tuple_entry(defaults, k); ++k) add(value);
    void* by_name = code_api().PyFunction_GetKwDefaults(const_cast<void*>(function));
    std::ptrdiff_t at = 0;
    void* key = nullptr;
    void* value = nullptr;
    while (by_name != nullptr && is_dict(by_name) && python.PyDict_Next(by_name, &at, &key, &value) != 0) add(value);
  }

  void add(const void* object) {
    if (is_builtin(object, "method")) {
      WrittenLink self(".__self__");
      visit_links(const_cast<void*>(object), self);
      object = self.object();
    }
    if (object == nullptr) return;
    if (is_function(object) && depth_ < kMaxWrapped) {
      const int depth = depth_;
      look_at(object, depth + 1);
      depth_ = depth;
    } else if (is_torch_module(object)) {
      all_.push_back(object);
    }
  }

  int depth_ = 0;
  std::vector<const void*> all_;
};

// Whether an operand was computed by this function, or with a weight of `module`.
bool is_computed_by(const Inquiry& inquiry, std::size_t operand, const void* function, const void* module) {
  const std::string_view name = runtime.recorder->string(qualified_name(code_of_function(function)));
  const std::unordered_set<std::uint32_t> weights = weight_tags(inquiry.search, module);
  bool found = false;
  visit_steps(inquiry.operands[operand].lineage, [&](const trace::LineageNode& node) {
    if (node.how != trace::How::derived) return false;
    const std::string_view here = runtime.recorder->string(runtime.recorder->site(node.site).user.function);
    found = here == name || weights.contains(std::uint32_t(node.parent));
    return !found;
  });
  return found;
}

// The line that stores the function: the only one, or the only one of the function that it is defined in.
std::optional<trace::Position> stored_at(const Inquiry& inquiry, std::size_t operand, const KeptFunction& kept) {
  const std::vector<Candidate> stores = attribute_stores(inquiry, kept.module, kept.attribute.name);
  if (const auto at = choose(inquiry, operand, stores)) return at;
  constexpr std::string_view kLocals = ".<locals>.";
  const std::string_view name = runtime.recorder->string(qualified_name(code_of_function(kept.function)));
  const std::size_t inner = name.rfind(kLocals);
  const std::string_view outer = name.substr(0, inner == name.npos ? 0 : inner);
  const auto only = [&](bool of_outer) {
    std::optional<trace::Position> found;
    for (const Candidate& one : stores) {
      if (of_outer && runtime.recorder->string(one.at.function) != outer) continue;
      if (found && !same_line(*found, one.at)) return std::optional<trace::Position>();
      found = one.at;
    }
    return found;
  };
  const auto there = only(true);
  return there ? there : only(false);
}

// Whether `function`, which a module of the running copy keeps, means one of another model that keeps it, too, where
// the operand is and the copy is not.
bool means_original(const Inquiry& inquiry, std::size_t operand, const KeptFunction& kept, const KeptFunctions& copy,
                    const void* meant) {
  const trace::DeviceSlot device = inquiry.operands[operand].device;
  if (type_of(meant) != type_of(kept.module) || copy.has_module(meant)) return false;
  if (!KeptFunctions(meant).has_function(kept.function)) return false;
  return Weights(inquiry.search, meant).some_on(device) && !Weights(inquiry.search, kept.module).some_on(device) &&
         is_computed_by(inquiry, operand, kept.function, meant);
}

// What a function of the running copy has computed with the weights of the original.
void find_computed_by_original(const Inquiry& inquiry, std::size_t operand) {
  std::unordered_set<const void*> known;
  const void* frame = program_frame(inquiry.innermost);
  for (int depth = 0; frame != nullptr && depth < kMaxFrames; ++depth, frame = caller_of(frame)) {
    const void* module = module_called(frame);
    if (module == nullptr || !known.insert(module).second) continue;
    const KeptFunctions copy(module);
    for (const KeptFunction& kept : copy.all()) {
      const MeantModules modules(kept.function);
      for (const void* meant : modules.all()) {
        if (!means_original(inquiry, operand, kept, copy, meant)) continue;
        const auto at = stored_at(inquiry, operand, kept);
        inquiry.found.add(trace::EvidenceKind::closure_of_copy, operand, at.value_or(trace::Position{}),
                          std::string(type_name(meant)) + written(kept.attribute));
        return;
      }
    }
  }
}

// The closures that keep a module, or a method of it.
std::vector<Holding> closures_with(const Inquiry& inquiry, const void* module) {
  std::vector<Holding> found;
  const auto add = [&found](const std::vector<Holding>& holdings) {
    std::ranges::copy_if(holdings, std::back_inserter(found),
                         [](const Holding& one) { return one.link.kind == LinkKind::closure; });
  };
  const std::vector<Holding> holdings = inquiry.search.holdings_of(module);
  add(holdings);
  for (const Holding& one : holdings) {
    if (is_builtin(one.holder, "method")) add(inquiry.search.holdings_of(one.holder));
  }
  return found;
}

}  // namespace

void find_closure_of_copy(const Inquiry& inquiry, std::size_t operand) {
  const std::vector<const Holding*> owners = inquiry.owners_of(operand);
  if (owners.empty()) return find_computed_by_original(inquiry, operand);
  for (const Holding* owner : owners) {
    const void* module = owner->holder;
    for (const Holding& closure : closures_with(inquiry, module)) {
      for (const Holding& kept : inquiry.search.holdings_of(closure.holder)) {
        const bool copy = kept.holder != module && type_of(kept.holder) == type_of(module);
        if (kept.link.kind != LinkKind::attribute || !copy) continue;
        const auto at = stored_at(inquiry, operand, {kept.holder, kept.link, closure.holder});
        inquiry.found.add(trace::EvidenceKind::closure_of_copy, operand, at.value_or(trace::Position{}),
                          std::string(type_name(module)) + written(kept.link));
        return;
      }
    }
  }
}

}  // namespace devsan::hooks

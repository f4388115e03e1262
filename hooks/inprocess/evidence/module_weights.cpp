#include "hooks/inprocess/evidence/module_weights.h"

#include <unordered_set>
#include <vector>

#include "hooks/inprocess/bridge/tensor_facts.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/waiting_calls.h"
#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/provenance/large_page.h"
#include "hooks/inprocess/provenance/lineage_nodes.h"

namespace devsan::hooks {

namespace {

class FirstArgument final : public LinkVisitor {
 public:
  explicit FirstArgument(const void* frame) {
    const void* code = frame_code(frame);
    if (code_arguments(code) == 0) return;
    name_ = code_local_name(code, 0);
    visit_frame(frame, false, *this);
  }
  const void* module() const { return module_; }
  bool link(const Link& link, void* object) override {
    if (link.name != name_) return true;
    if (is_torch_module(object)) module_ = object;
    return false;
  }

 private:
  const void* name_ = nullptr;
  const void* module_ = nullptr;
};

class WeightWalk final : public LinkVisitor {
 public:
  WeightWalk(const ObjectSearch& search, const std::function<bool(const c10::TensorImpl&)>& visit)
      : search_(search), visit_(visit) {}

  void run(const void* root) {
    std::vector<const void*> modules{root};
    seen_.insert(root);
    while (!modules.empty() && !done_) {
      const void* module = modules.back();
      modules.pop_back();
      children_.clear();
      visit_links(const_cast<void*>(module), *this);
      modules.insert(modules.end(), children_.rbegin(), children_.rend());
    }
  }

  bool link(const Link& link, void* object) override {
    if (link.kind == LinkKind::child && seen_.insert(object).second) children_.push_back(object);
    if (link.kind == LinkKind::parameter || link.kind == LinkKind::buffer) {
      const c10::TensorImpl* tensor = search_.tensor_at(object);
      if (tensor != nullptr && seen_.insert(object).second) done_ = !visit_(*tensor);
    }
    done_ = done_ || seen_.size() >= kMaxSeen;
    return !done_;
  }

 private:
  static constexpr std::size_t kMaxSeen = 20000;

  const ObjectSearch& search_;
  const std::function<bool(const c10::TensorImpl&)>& visit_;
  std::vector<const void*> children_;
  std::unordered_set<const void*> seen_;
  bool done_ = false;
};

// The modules below one, and itself.
class ModuleWalk final : public LinkVisitor {
 public:
  ModuleWalk(const void* root, std::size_t most) : most_(most), modules_{root}, seen_{root} {
    for (std::size_t k = 0; k < modules_.size(); ++k) visit_links(const_cast<void*>(modules_[k]), *this);
  }
  bool link(const Link& link, void* object) override {
    const bool child = link.kind == LinkKind::child && modules_.size() < most_;
    if (child && seen_.insert(object).second) modules_.push_back(object);
    return modules_.size() < most_;
  }
  std::vector<const void*> take() { return std::move(modules_); }

 private:
  const std::size_t most_;
  std::vector<const void*> modules_;
  std::unordered_set<const void*> seen_;
};

}  // namespace

std::vector<const void*> modules_below(const void* root, std::size_t most) {
  return ModuleWalk(root, most).take();
}

void visit_weights(const ObjectSearch& search, const void* root,
                   const std::function<bool(const c10::TensorImpl&)>& visit) {
  WeightWalk(search, visit).run(root);
}

std::optional<trace::LineageNode> newest_move_of(const c10::TensorImpl& weight) {
  std::optional<trace::LineageNode> found;
  const c10::StorageImpl* storage = storage_of(&weight);
  if (storage == nullptr) return found;
  visit_steps(origin_table().find(storage), [&](const trace::LineageNode& node) {
    if (node.how == trace::How::moved) found = node;
    return node.how == trace::How::derived;
  });
  return found;
}

std::unordered_set<std::uint32_t> weight_tags(const ObjectSearch& search, const void* root) {
  std::unordered_set<std::uint32_t> tags;
  visit_weights(search, root, [&](const c10::TensorImpl& weight) {
    const c10::StorageImpl* storage = storage_of(&weight);
    if (storage != nullptr) tags.insert(std::uint32_t(origin_table().find(storage)));
    return true;
  });
  tags.erase(std::uint32_t(trace::LineageId::none));
  return tags;
}

Weights::Weights(const ObjectSearch& search, const void* root) {
  visit_weights(search, root, [this](const c10::TensorImpl& weight) {
    ++counts_[device_slot_of(&weight)];
    ++all_;
    return true;
  });
}

trace::DeviceSlot Weights::usual() const {
  for (const auto& [device, count] : counts_) {
    if (all_ >= kSeveral && count * 2 > all_) return device;
  }
  return trace::DeviceSlot::none;
}

bool Weights::mostly_on(trace::DeviceSlot device) const {
  const auto found = counts_.find(device);
  return found != counts_.end() && found->second * 2 >= all_;
}

std::string Weights::share_of(trace::DeviceSlot device) const {
  return std::to_string(counts_.at(device)) + " of " + std::to_string(all_);
}

bool is_never_called(const void* module) {
  const std::string_view type = short_type_name(module);
  return type == "ModuleList" || type == "ModuleDict";
}

const void* module_called(const void* frame) {
  return runs_python(frame) ? FirstArgument(frame).module() : nullptr;
}

bool called_by_program(const void* frame, const void* caller) {
  const void* previous = frame_previous(frame);
  while (previous != nullptr && previous != caller && !runs_python(previous)) previous = frame_previous(previous);
  return previous == caller;
}

}  // namespace devsan::hooks

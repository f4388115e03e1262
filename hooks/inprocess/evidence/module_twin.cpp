// `policy.target_model` beside `policy.target_models`, which has a copy of it for each device: by their names the one
// is what the others were made from, and no device's own.
#include <optional>
#include <string>
#include <string_view>

#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/module_weights.h"
#include "hooks/inprocess/evidence/waiting_calls.h"
#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/source/python_text.h"
#include "hooks/inprocess/source/source_files.h"

namespace devsan::hooks {

namespace {

constexpr int kMaxFrames = 24;

// A module of the same class whose weights are all where the operand is missed, in an attribute that is named after the
// module's, or in a list or dictionary there.
class FindTwinModule final : public LinkVisitor {
 public:
  FindTwinModule(const Inquiry& inquiry, std::size_t operand, const void* module, const std::string& name)
      : inquiry_(inquiry), operand_(operand), module_(module), name_(name) {}
  const std::string& found() const { return found_; }

  bool link(const Link& link, void* object) override {
    if (inside_) {
      if (is_twin(object)) found_ = attribute_;
      return found_.empty();
    }
    attribute_ = link_name(link);
    if (attribute_.size() <= name_.size() || !attribute_.starts_with(name_)) return true;
    if (is_twin(object)) {
      found_ = attribute_;
    } else if (is_container(object)) {
      inside_ = true;
      visit_links(object, *this);
      inside_ = false;
    }
    return found_.empty();
  }

 private:
  bool is_twin(const void* object) const {
    if (object == module_ || !is_torch_module(object) || type_of(object) != type_of(module_)) return false;
    const auto device = Weights(inquiry_.search, object).only();
    return device && inquiry_.is_wanted(operand_, *device);
  }

  const Inquiry& inquiry_;
  const std::size_t operand_;
  const void* const module_;
  const std::string& name_;
  bool inside_ = false;
  std::string attribute_;
  std::string found_;
};

// The innermost line that waits for the failing one and says this attribute of an object.
std::optional<trace::Position> taken_where(const Inquiry& inquiry, const std::string& name) {
  const std::string attribute = "." + name;
  SourceFiles files;
  const void* frame = program_frame(inquiry.innermost);
  for (int depth = 0; frame != nullptr && depth < kMaxFrames; ++depth, frame = caller_of(frame)) {
    const trace::Position at = waits_at(frame);
    const std::string statement = statement_at(SourceLines(files.whole(at.file)), at.line);
    if (statement.find(attribute) != statement.npos && mentions_name(statement, name)) return at;
  }
  return std::nullopt;
}

}  // namespace

void find_module_twin(const Inquiry& inquiry, std::size_t operand) {
  const std::vector<const Holding*> owners = inquiry.owners_of(operand);
  if (owners.empty()) return;
  const void* module = owners.back()->holder;
  for (const Holding& holding : inquiry.search.holdings_of(module)) {
    const std::string name = link_name(holding.link);
    if (holding.link.kind != LinkKind::attribute || name.empty()) continue;
    FindTwinModule twin(inquiry, operand, module, name);
    visit_links(const_cast<void*>(holding.holder), twin);
    const auto taken = twin.found().empty() ? std::nullopt : taken_where(inquiry, name);
    if (taken) return inquiry.found.add(trace::EvidenceKind::module_twin_at, operand, *taken, twin.found());
  }
}

}  // namespace devsan::hooks

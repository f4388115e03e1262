#include "hooks/inprocess/snapshot/argument_tensors.h"

#include <utility>

#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/python_frames.h"

namespace devsan::hooks {

namespace {

class Collector final : public LinkVisitor {
 public:
  Collector(const ObjectSearch& search, const void* frame)
      : search_(search), arguments_(code_named_arguments(frame_code(frame))) {
    visit_frame(frame, false, *this);
    for (const Container& one : containers_) {
      inside_ = one.name;
      visit_links(one.object, *this);
    }
  }
  std::vector<ArgumentTensor> found;

  bool link(const Link& link, void* object) override {
    if (inside_ == nullptr && (link.kind != LinkKind::local || link.index >= arguments_)) return true;
    if (const c10::TensorImpl* tensor = search_.tensor_at(object)) {
      found.push_back({inside_ != nullptr ? inside_ : link.name, object, tensor, inside_ == nullptr});
    } else if (inside_ == nullptr && is_container(object)) {
      containers_.push_back({object, link.name});
    }
    return true;
  }

 private:
  struct Container {
    void* object;
    const void* name;
  };

  const ObjectSearch& search_;
  const int arguments_;
  std::vector<Container> containers_;
  const void* inside_ = nullptr;  // the name of the argument whose entries are visited
};

}  // namespace

std::vector<ArgumentTensor> argument_tensors(const ObjectSearch& search, const void* frame) {
  return std::move(Collector(search, frame).found);
}

}  // namespace devsan::hooks

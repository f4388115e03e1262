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
    inside_ = true;
    for (void* container : containers_) visit_links(container, *this);
  }
  std::vector<ArgumentTensor> found;

  bool link(const Link& link, void* object) override {
    if (!inside_ && (link.kind != LinkKind::local || link.index >= arguments_)) return true;
    if (const c10::TensorImpl* tensor = search_.tensor_at(object)) {
      found.push_back({object, tensor});
    } else if (!inside_ && is_container(object)) {
      containers_.push_back(object);
    }
    return true;
  }

 private:
  const ObjectSearch& search_;
  const int arguments_;
  std::vector<void*> containers_;
  bool inside_ = false;  // whether the entries of arguments are visited
};

}  // namespace

std::vector<ArgumentTensor> argument_tensors(const ObjectSearch& search, const void* frame) {
  return std::move(Collector(search, frame).found);
}

}  // namespace devsan::hooks

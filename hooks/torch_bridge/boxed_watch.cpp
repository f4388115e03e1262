#include "hooks/torch_bridge/boxed_watch.h"

namespace devsan::hooks {

namespace {

// Undefined where no index is a mask.
at::Tensor mask_among(const c10::IValue& indices) noexcept {
  if (!indices.isList()) return {};
  for (const c10::IValue& index : indices.toListRef()) {
    if (index.isTensor() && is_mask_on_device(index.unsafeToTensorImpl())) return index.toTensor();
  }
  return {};
}

}  // namespace

BoxedWatch::BoxedWatch(Watch how, trace::OperatorId op, BoxedArguments arguments) noexcept : how_(how) {
  if (how == Watch::none) return;
  call_.emplace(how, op, is_nested(thread_state()));
  if (!arguments.empty() && arguments[0].isTensor()) tensor_ = arguments[0].toTensor();
  if (arguments.size() < 2) return;
  if (how == Watch::mask) other_ = mask_among(arguments[1]);
  if (how == Watch::copy && arguments[1].isTensor()) other_ = arguments[1].toTensor();
  if (how == Watch::value && arguments.back().isTensor()) other_ = arguments.back().toTensor();
  non_blocking_ = arguments.size() > 2 && arguments[2].isBool() && arguments[2].toBool();
}

void BoxedWatch::returned() const noexcept {
  if (!tensor_.defined()) return;
  switch (how_) {
    case Watch::none:
      break;
    case Watch::copy:
      if (other_.defined()) call_->copied(tensor_, other_, non_blocking_);
      break;
    case Watch::number:
      call_->took_number(tensor_);
      break;
    case Watch::wait:
      call_->waited(tensor_);
      break;
    case Watch::value:
      if (other_.defined()) call_->took_value(other_);
      break;
    case Watch::mask:
      if (other_.defined()) call_->indexed(tensor_, other_);
      break;
  }
}

}  // namespace devsan::hooks

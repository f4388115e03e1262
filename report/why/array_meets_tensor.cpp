// `td.pow(2) * weight`, where `weight` is an array of NumPy: Python hands the product over to the array, and that asks
// the tensor for an array. A tensor that is differentiated cannot become one, so the array has to become a tensor.
#include "report/frames.h"
#include "report/operands.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {

std::optional<Explanation> array_meets_tensor(const Finding& finding) {
  const Operand* tensor = first_odd(finding.operands);
  if (tensor == nullptr || !finding.where || !on_accelerator(*tensor)) return std::nullopt;
  const Evidence* array = place_of(*tensor, trace::EvidenceKind::array_beside_at, finding);
  if (array == nullptr) return std::nullopt;
  const std::string name = "`" + array->text + "`";
  const bool here = same_line(array->at, *finding.where);
  const std::string device = device_at(array->at, *tensor, finding);
  return Explanation{
      cause_at(array->at, *tensor,
               name +
                   (here ? " is an array of NumPy, which is computed with "
                         : " is an array of NumPy, and gets its value here. " + short_place(*finding.where) +
                               " computes with it and ") +
                   mention(*tensor) + " on " + spoken_device(tensor->device) +
                   ": NumPy asks for the memory of the host. What is differentiated cannot become an array."),
      Fix{array->at.file, array->at.line,
          "Make a tensor of it, here: `torch.as_tensor(" + array->text + ", device=" + device + ")`."}};
}

}  // namespace devsan::report::why

#include "report/slice/history.h"

#include <algorithm>

namespace devsan::report::slice {

const LineageStep* deciding_step(const Operand& operand) {
  const auto found = std::ranges::find_if(operand.lineage, [](const LineageStep& step) {
    return step.how == trace::How::moved || step.how == trace::How::created;
  });
  return found == operand.lineage.end() ? nullptr : &*found;
}

}  // namespace devsan::report::slice

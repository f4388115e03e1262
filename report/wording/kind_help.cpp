#include "report/wording/kind_help.h"

namespace devsan::report {
namespace {

std::string_view advice_for(Kind kind) {
  switch (kind) {
    case Kind::device_mismatch:
      return "Change the line where the odd operand came to its device: name the device there, move the value, or "
             "register it as a buffer or a parameter, so that it moves with its module.";
    case Kind::mixed_operands:
      return "PyTorch allows this for scalars, indices and copies. In a loop each costs a copy or a wait; keep the "
             "value "
             "on the device of the others.";
    case Kind::implicit_sync:
      return "Each such wait keeps the host from queueing further work. Read numbers less often, or keep them on the "
             "device until the end of the step.";
    case Kind::implicit_transfer:
      return "Move the data once, where it is made, in place of every time that it is used.";
    case Kind::unpinned_async_copy:
      return "Pin the host memory, as by `pin_memory=True` of a DataLoader: from pageable memory the copy waits.";
    case Kind::async_race:
      return "Wait for the copy before the memory is used: synchronize the stream or an event, or copy without "
             "`non_blocking=True`.";
    case Kind::wrong_placement:
      return "Check what places this value, and name the device that it should be on.";
    case Kind::attribute_overwritten:
      return "Keep the attribute as its owner has set it, or change it in the one place that decides about it.";
    case Kind::memory_growth:
      return "Find what keeps the tensors from step to step, such as a list of losses with their graphs; keep numbers, "
             "or `detach()` what is kept.";
    case Kind::out_of_memory:
      return "The tables of the finding name what was live, by kind, module and line. Reduce the largest of these.";
    case Kind::host_dereference:
      return "The address is that of device memory. Copy the tensor to the host first, or pass the address to code "
             "that "
             "runs on the device.";
    case Kind::abnormal_exit:
      return "The last operators and the memory of the process show what it was doing; a signal or the kernel's log "
             "may "
             "say who ended it.";
    case Kind::collective_slow:
      return "If one rank is late again and again, give it less work. If it is late once, as for a checkpoint, raise "
             "`--hang-after`.";
    default:
      return "";
  }
}

}  // namespace

std::string help_of(Kind kind) {
  std::string text(meaning_of(kind));
  if (!text.empty() && text.front() >= 'a' && text.front() <= 'z') text.front() = static_cast<char>(text.front() - 32);
  const std::string_view advice = advice_for(kind);
  return advice.empty() ? text + "." : text + ". " + std::string(advice);
}

}  // namespace devsan::report

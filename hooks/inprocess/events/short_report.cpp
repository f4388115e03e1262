#include "hooks/inprocess/events/short_report.h"

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <string_view>

#include "hooks/inprocess/common/runtime.h"
#include "trace/odd_operand.h"

namespace devsan::hooks {

namespace {

// Text that is cut where the buffer ends.
class Text {
 public:
  __attribute__((format(printf, 2, 3))) void add(const char* format, ...) noexcept {
    va_list arguments;
    va_start(arguments, format);
    const int length = std::vsnprintf(text_ + used_, sizeof text_ - used_, format, arguments);
    va_end(arguments);
    used_ = std::min(sizeof text_ - 1, used_ + static_cast<std::size_t>(std::max(length, 0)));
  }
  const char* text() const noexcept { return text_; }

 private:
  char text_[4096] = {};
  std::size_t used_ = 0;
};

int length_of(std::string_view text) noexcept {
  return static_cast<int>(text.size());
}

std::string_view string(trace::StringId id) noexcept {
  return runtime.recorder->string(id);
}

std::string_view device_text(trace::DeviceSlot slot) noexcept {
  return string(runtime.recorder->device_name(slot));
}

void add_shape(Text& text, const trace::OperandRecord& operand) noexcept {
  if ((operand.flags & trace::kGenerator) != 0) return text.add(" generator");
  if ((operand.flags & trace::kDeviceArgument) != 0) return text.add(" argument");
  if ((operand.flags & trace::kUnseen) != 0) return;
  const std::string_view dtype = string(operand.dtype);
  text.add(" %.*s[", length_of(dtype), dtype.data());
  for (std::size_t k = 0; k < std::min<std::size_t>(operand.dims, trace::kMaxShownDims); ++k) {
    text.add(k == 0 ? "%lld" : ", %lld", static_cast<long long>(operand.sizes[k]));
  }
  text.add("]");
}

// The step at which the value came to the device it is on: the newest that did not take it from an operand there.
void add_origin(Text& text, const trace::OperandRecord& operand) noexcept {
  trace::LineageNode node = runtime.recorder->lineage(operand.lineage);
  if (operand.lineage == trace::LineageId::none) return;
  for (int step = 0;
       node.how == trace::How::derived && node.parent != trace::LineageId::none && step < 2 * trace::kMaxLineageDepth;
       ++step) {
    node = runtime.recorder->lineage(node.parent);
  }
  const trace::Position at = runtime.recorder->site(node.site).user;
  const std::string_view file = string(at.file);
  if (file.empty()) return;
  const std::string_view device = device_text(node.device);
  text.add("\n            %s %.*s at %.*s:%d", node.how == trace::How::moved ? "moved to" : "made on",
           length_of(device), device.data(), length_of(file), file.data(), at.line);
}

}  // namespace

void say_first_finding(const trace::MeetingPayload& meeting, std::span<const trace::OperandRecord> operands) noexcept {
  static std::atomic<bool> said{false};
  if (said.exchange(true)) return;
  const std::string_view op = string(runtime.recorder->operator_name(meeting.op));
  const trace::Position at = runtime.recorder->site(meeting.site).user;
  Text text;
  const bool no_memory = (meeting.flags & trace::kOutOfMemory) != 0;
  text.add("%s", no_memory ? "out of memory" : "device mismatch");
  if (!op.empty()) text.add(" in %.*s", length_of(op), op.data());
  if (at.line > 0) text.add(" at %.*s:%d", length_of(string(at.file)), string(at.file).data(), at.line);
  text.add(" (step %u)", meeting.step);
  if (no_memory) operands = {};
  const trace::OddOperands odd(op, string(meeting.message), operands, string, device_text);
  for (const trace::OperandRecord& operand : operands) {
    const std::string_view name = string(operand.name != trace::StringId::none ? operand.name : operand.argument);
    const std::string_view device = device_text(operand.device);
    const bool is_odd = odd.odd(operand);
    text.add("\n  %s %-7.*s %.*s", is_odd ? "->" : "  ", length_of(device), device.data(), length_of(name),
             name.data());
    add_shape(text, operand);
    if (is_odd) add_origin(text, operand);
  }
  text.add("\n  whole report: devsan view %s", runtime.recorder->directory());
  runtime.host->say(text.text());
}

}  // namespace devsan::hooks

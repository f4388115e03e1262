#include "hooks/torch_bridge/host_access.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <span>

#include "hooks/inprocess/bridge/live_storages.h"
#include "hooks/inprocess/common/nearest_symbol.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/common/thread_state.h"
#include "hooks/inprocess/interpreter/python_thread.h"
#include "hooks/inprocess/provenance/device_slots.h"
#include "hooks/inprocess/provenance/sites.h"
#include "hooks/inprocess/provenance/stack.h"
#include "hooks/inprocess/provenance/thread_caches.h"
#include "hooks/torch_bridge/backward.h"
#include "hooks/torch_bridge/event.h"
#include "hooks/torch_bridge/tensor_fields.h"
#include "trace/clock.h"
#include "trace/fixed_text.h"

namespace devsan::hooks {

namespace {

using Line = FixedText<1024>;

trace::DeviceSlot slot_of(const HostAccess& access) noexcept {
  if (access.block == nullptr) return trace::DeviceSlot::none;
  const c10::Device device(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(access.device));
  return device_slot(device_key(device));
}

trace::OperandRecord owner_of(const HostAccess& access) noexcept {
  trace::OperandRecord owner{};
  owner.device = slot_of(access);
  owner.lineage = origin_of_memory(access.block, access.bytes, owner.device);
  owner.flags = trace::kUnseen;
  owner.storage_bytes = access.bytes;
  return owner;
}

// "read 16 of 4096"
trace::EvidenceRecord evidence_of(const HostAccess& access) noexcept {
  Line text(access.writes ? "write" : "read");
  if (access.block != nullptr) {
    const auto offset = static_cast<const char*>(access.address) - static_cast<const char*>(access.block);
    text.append(" ").append_number(static_cast<std::uint64_t>(offset)).append(" of ").append_number(access.bytes);
  }
  trace::EvidenceRecord evidence{};
  evidence.text = runtime.recorder->intern_string(text.view());
  evidence.kind = trace::EvidenceKind::host_access;
  evidence.operand = access.block != nullptr ? 0 : trace::kWholeFinding;
  return evidence;
}

// The code that did it, and what called that, where it is of the C library, which works for others.
std::size_t native_frames(const HostAccess& access, std::span<trace::NativeFrame, 2> frames) noexcept {
  std::size_t count = 0;
  for (const void* address : {access.instruction, access.caller}) {
    const NativePlace place = native_place(address);
    if (place.module.empty()) break;
    frames[count++] = {runtime.recorder->intern_string(place.module), runtime.recorder->intern_string(place.symbol),
                       place.offset};
    if (place.module.find("/libc.so") == place.module.npos) break;
  }
  return count;
}

// The operator that is running on the thread: the last one that was recorded.
void append_place(Line& line, trace::SiteId site) noexcept {
  const trace::Position at = runtime.recorder->site(site).user;
  if (at.line <= 0) return;
  line.append(" at ").append(runtime.recorder->string(at.file)).append(":");
  line.append_number(static_cast<std::uint64_t>(at.line));
}

void say_once(const trace::MeetingPayload& meeting, const trace::OperandRecord& owner) noexcept {
  static bool said = false;
  if (said) return;
  said = true;
  Line line("code on the host followed a device pointer");
  append_place(line, meeting.site);
  const std::string_view device = runtime.recorder->string(runtime.recorder->device_name(owner.device));
  if (!device.empty()) line.append("\n  -> ").append(device);
  trace::LineageNode node = runtime.recorder->lineage(owner.lineage);
  for (std::uint32_t step = 0; node.how == trace::How::derived && step < 2u * trace::kMaxLineageDepth; ++step) {
    if (node.parent == trace::LineageId::none) break;
    node = runtime.recorder->lineage(node.parent);
  }
  if (owner.lineage != trace::LineageId::none) {
    line.append(node.how == trace::How::moved ? "  its memory was moved there" : "  its memory was made");
    append_place(line, node.site);
  }
  line.append("\n  whole report: devsan view ").append(runtime.recorder->directory());
  runtime.host->say(line.c_str());
}

}  // namespace

void prepare_for_host_accesses() noexcept {
  prepare_to_find_storages();
  prepare_native_places();
}

// A fork child that has run no operator has no trace yet, and cannot make one here.
void note_host_access(const HostAccess& access) noexcept {
  ThreadState& state = thread_state();
  if (!runtime.recorder->active() || state.busy) return;
  const void* python = python_thread(state);
  const trace::SiteId fallback = state.backward_depth != 0 ? backward_call_site() : trace::SiteId::none;
  const Stack stack(state, fallback, Stack::Native::leave);
  trace::MeetingPayload fixed{};
  fixed.flags = trace::kHostAccess;
  fixed.time_ns = trace::wall_clock_ns();
  if (python != nullptr) fixed.site = call_site_again(nullptr, current_frame(python), true).id;
  fixed.op = state.depth == 0 ? trace::OperatorId::none : running_operator(state);
  fixed.phase = stack.phase();
  fixed.step = fixed.last_step = runtime.step.load(std::memory_order_relaxed);
  fixed.tid = static_cast<std::uint32_t>(::syscall(SYS_gettid));
  fixed.thread_name = state.ring != nullptr ? state.ring->name : trace::StringId::none;
  const trace::OperandRecord owner = owner_of(access);
  const trace::EvidenceRecord evidence = evidence_of(access);
  std::array<trace::NativeFrame, 2> native;
  const std::size_t natives = native_frames(access, native);
  keep_source_lines(stack.frames());
  keep_source_lines(owner.lineage);
  const std::span<const trace::OperandRecord> owners(&owner, access.block != nullptr ? 1 : 0);
  runtime.recorder->add_meeting(fixed, owners, stack.frames(), {}, {native.data(), natives}, {&evidence, 1});
  say_once(fixed, owner);
}

}  // namespace devsan::hooks

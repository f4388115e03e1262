#include "hooks/inprocess/provenance/stack.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>

#include <algorithm>
#include <string_view>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/interpreter/code_table.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/interpreter/python_thread.h"
#include "hooks/inprocess/source/source_files.h"

namespace devsan::hooks {

namespace {

bool contains(std::string_view text, std::string_view part) noexcept {
  return text.find(part) != text.npos;
}

// "DeepSpeedZeroOptimizer_Stage3.step" and "Adam.step" step an optimizer; "Trainer.training_step" does not.
bool steps_an_optimizer(std::string_view file, std::string_view function) noexcept {
  const std::size_t dot = function.rfind('.');
  const std::string_view method = dot == function.npos ? function : function.substr(dot + 1);
  if (method != "step" && method != "_step") return false;
  const std::string_view owner = dot == function.npos ? std::string_view() : function.substr(0, dot);
  return contains(owner, "ptimizer") || contains(file, "optim");
}

trace::Phase phase_of(std::string_view file, std::string_view function) noexcept {
  if (steps_an_optimizer(file, function)) return trace::Phase::optimizer;
  if (contains(file, "/torch/utils/data/")) return trace::Phase::data;
  if (contains(file, "/torch/serialization.py") || contains(file, "/torch/distributed/checkpoint/") ||
      function.ends_with("load_state_dict") || function.ends_with("_checkpoint")) {
    return trace::Phase::checkpoint;
  }
  if (contains(file, "/torch/nn/modules/module.py") && function.ends_with("_call_impl")) return trace::Phase::forward;
  return trace::Phase::other;
}

std::uint32_t frame_flags(std::uint32_t marks) noexcept {
  std::uint32_t flags = 0;
  if ((marks & kTorchCode) != 0) flags |= trace::kTorchFrame;
  if ((marks & kLibraryCode) != 0) flags |= trace::kLibraryFrame;
  return flags;
}

}  // namespace

Stack::Stack(const ThreadState& state, trace::SiteId fallback, Native native) noexcept {
  const void* thread = python_thread(state);
  if (thread != nullptr) read_python(current_frame(thread));
  if (frame_count_ == 0 && fallback != trace::SiteId::none) {
    frame_count_ = frames_of_site(fallback, std::span<trace::FrameRecord, 2>(frames_.data(), 2));
  }
  if (frame_count_ == 0 && native == Native::read) read_native();
  if (state.backward_depth != 0) phase_ = trace::Phase::backward;
}

void Stack::read_python(const void* frame) noexcept {
  for (; frame != nullptr && frame_count_ < kMaxFrames; frame = frame_previous(frame)) {
    const void* code = frame_code(frame);
    const std::uint32_t marks = code_table.marks(code);
    if ((marks & kNoCode) != 0) continue;
    trace::FrameRecord& record = frames_[frame_count_++];
    record.position = position_of(code, frame_instruction(frame, code));
    record.flags = frame_flags(marks);
    note_phase(record.position);
  }
}

// Inner frames know better: an optimizer's step inside a module's forward is a step, and the loader's own code wins
// over the loop around it. Only what says nothing is overruled by frames further out.
void Stack::note_phase(const trace::Position& position) noexcept {
  if (phase_ == trace::Phase::other) {
    phase_ = phase_of(runtime.recorder->string(position.file), runtime.recorder->string(position.function));
  }
}

void Stack::read_native() noexcept {
  void* addresses[kMaxNativeFrames + 8];
  const int count = ::backtrace(addresses, static_cast<int>(std::size(addresses)));
  for (int k = 0; k < count && native_count_ < kMaxNativeFrames; ++k) {
    Dl_info info{};
    if (::dladdr(addresses[k], &info) == 0 || info.dli_fname == nullptr) continue;
    const std::string_view module = info.dli_fname;
    if (contains(module, "libdevsan")) continue;
    trace::NativeFrame& frame = native_[native_count_++];
    frame.module = runtime.recorder->intern_string(module);
    const auto address = reinterpret_cast<std::uintptr_t>(addresses[k]);
    frame.offset = address - reinterpret_cast<std::uintptr_t>(info.dli_fbase);
    if (info.dli_sname == nullptr) continue;
    int status = 0;
    char* readable = abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status);
    frame.symbol = runtime.recorder->intern_string(status == 0 && readable != nullptr ? readable : info.dli_sname);
    std::free(readable);
    frame.offset = address - reinterpret_cast<std::uintptr_t>(info.dli_saddr);
  }
}

std::size_t frames_of_site(trace::SiteId id, std::span<trace::FrameRecord, 2> frames) noexcept {
  const trace::Site site = runtime.recorder->site(id);
  if (site.innermost.file == trace::StringId::none) return 0;
  std::size_t count = 0;
  const bool same = site.innermost.file == site.user.file && site.innermost.line == site.user.line;
  if (!same) {
    frames[count].position = site.innermost;
    frames[count++].flags = trace::kTorchFrame;
  }
  frames[count].position = site.user;
  frames[count++].flags = 0;
  return count;
}

void keep_source_lines(std::span<const trace::FrameRecord> frames) noexcept {
  SourceFiles files;
  for (const trace::FrameRecord& frame : frames) files.keep(frame.position.file, frame.position.line);
}

void keep_source_lines(trace::LineageId lineage) noexcept {
  SourceFiles files;
  for (int steps = 0; lineage != trace::LineageId::none && steps <= 2 * trace::kMaxLineageDepth; ++steps) {
    const trace::LineageNode node = runtime.recorder->lineage(lineage);
    const trace::Site site = runtime.recorder->site(node.site);
    files.keep(site.user.file, site.user.line);
    if (node.calls != 0) keep_source_lines(trace::LineageId{node.calls});
    lineage = node.parent;
  }
}

void keep_source_lines(trace::SiteId site) noexcept {
  trace::FrameRecord frames[2];
  keep_source_lines({frames, frames_of_site(site, frames)});
}

}  // namespace devsan::hooks

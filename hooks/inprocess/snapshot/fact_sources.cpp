#include "hooks/inprocess/snapshot/fact_sources.h"

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/interpreter/code_table.h"
#include "hooks/inprocess/source/source_files.h"

namespace devsan::hooks {

namespace {

class SourceRecorder {
 public:
  void add(trace::StringId file) noexcept {
    if (file == trace::StringId::none || file == last_) return;
    last_ = file;
    if ((code_table.marks_of_file(runtime.recorder->string(file)) & kTorchCode) != 0) return;
    if (!runtime.recorder->wants_source_file(file)) return;
    const std::string_view text = files_.whole(file);
    if (!text.empty()) runtime.recorder->add_source_file(file, text, runtime.host->options.source);
  }

  void add(const trace::FrameRecord* frames, std::size_t count) noexcept {
    for (std::size_t k = 0; k < count; ++k) add(frames[k].position.file);
  }

  void add_site(trace::SiteId id) noexcept {
    const trace::Site site = runtime.recorder->site(id);
    add(site.user.file);
    add(site.innermost.file);
  }

  // The steps of a history, and the calls that led to each.
  void add_history(trace::LineageId id) noexcept {
    for (int steps = 0; id != trace::LineageId::none && steps <= trace::kMaxLineageDepth; ++steps) {
      const trace::LineageNode node = runtime.recorder->lineage(id);
      add_site(node.site);
      trace::LineageId call{node.calls};
      for (std::size_t calls = 0; call != trace::LineageId::none && calls < trace::kMaxCalls; ++calls) {
        const trace::LineageNode made = runtime.recorder->lineage(call);
        add_site(made.site);
        call = made.parent;
      }
      id = node.parent;
    }
  }

 private:
  SourceFiles files_;
  trace::StringId last_ = trace::StringId::none;
};

}  // namespace

void record_sources(const trace::MeetingPayload& meeting, std::span<const trace::ObjectFact> objects) noexcept {
  SourceRecorder sources;
  const auto* operands = reinterpret_cast<const trace::OperandRecord*>(&meeting + 1);
  const auto* frames = reinterpret_cast<const trace::FrameRecord*>(operands + meeting.operands);
  sources.add(frames, std::size_t{meeting.frames} + meeting.forward_frames);
  for (std::size_t k = 0; k < meeting.operands; ++k) sources.add_history(operands[k].lineage);
  for (const trace::ObjectFact& object : objects) sources.add(object.file);
}

}  // namespace devsan::hooks

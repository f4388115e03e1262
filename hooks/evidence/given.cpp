// Which calls gave a running function the operand that failed in it: from the frames that wait for it, and the text of
// the calls that they are in.
#include <string>

#include "hooks/evidence/evidence.h"
#include "hooks/python/code_api.h"
#include "hooks/python/python_frames.h"
#include "hooks/python/waiting_calls.h"
#include "hooks/source/source_files.h"

namespace devsan::hooks {

namespace {

constexpr int kMaxCalls = 4;

}  // namespace

void find_given(const Inquiry& inquiry, std::size_t operand) {
  add_calls_with(inquiry, operand, inquiry.search.sighting(operand).place, trace::EvidenceKind::given_at);
}

void add_calls_with(const Inquiry& inquiry, std::size_t operand, std::uint32_t at, trace::EvidenceKind kind) {
  if (at == kNoPlace) return;
  while (!inquiry.search.is_root(at)) at = inquiry.search.place(at).parent;
  const Place& root = inquiry.search.place(at);
  if (root.frame == nullptr || root.link.kind != LinkKind::local || root.link.name == nullptr) return;
  std::string name = text_of(root.link.name);
  const void* frame = root.frame;
  SourceFiles files;
  for (int calls = 0; calls < kMaxCalls && has_named_argument(frame_code(frame), name); ++calls) {
    if (name == "self") return;
    const void* caller = caller_of(frame);
    const auto handed = caller != nullptr ? given_by(files, caller, frame, name) : std::nullopt;
    if (!handed) return;
    inquiry.found.add(kind, operand, handed->at, handed->text);
    name = handed->text;
    frame = caller;
  }
}

}  // namespace devsan::hooks

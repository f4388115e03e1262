// Which calls gave a running function the operand that failed in it: from the frames that wait for it, and the text of
// the calls that they are in.
#include <optional>
#include <string>
#include <string_view>

#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/waiting_calls.h"
#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/snapshot/named_objects.h"
#include "hooks/inprocess/source/python_moves.h"
#include "hooks/inprocess/source/source_files.h"

namespace devsan::hooks {

namespace {

constexpr int kMaxCalls = 4;

// The calls that gave the running functions what stands at a place of the search: `visit(handed, caller)`.
template <class Visit>
void visit_calls_with(const Inquiry& inquiry, std::uint32_t at, Visit visit) {
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
    visit(*handed, caller);
    name = handed->text;
    frame = caller;
  }
}

// `loss(batch["next"])`: what the outermost call gives is an entry or attribute of a variable.
void find_container(const Inquiry& inquiry, std::size_t operand, const Handed& given, const void* caller) {
  const std::string variable = given.text.substr(0, end_of_name(given.text, 0));
  const std::string_view rest = std::string_view(given.text).substr(variable.size());
  if (variable.empty() || variable == "self" || !rest.starts_with('[')) return;
  if (const auto bound = binding_of(inquiry, operand, caller, variable)) {
    inquiry.found.add(trace::EvidenceKind::container_bound_at, operand, bound->at, bound->name);
  }
}

}  // namespace

void find_given(const Inquiry& inquiry, std::size_t operand) {
  std::optional<Handed> outermost;
  const void* giver = nullptr;
  visit_calls_with(inquiry, inquiry.search.sighting(operand).place, [&](const Handed& handed, const void* caller) {
    inquiry.found.add(trace::EvidenceKind::given_at, operand, handed.at, handed.text);
    outermost = handed;
    giver = caller;
  });
  if (outermost) find_container(inquiry, operand, *outermost, giver);
}

void add_calls_with(const Inquiry& inquiry, std::size_t operand, std::uint32_t at, trace::EvidenceKind kind) {
  visit_calls_with(inquiry, at, [&](const Handed& handed, const void*) {
    inquiry.found.add(kind, operand, handed.at, handed.text);
  });
}

// `corners_of(sizes, float(heading[i]), self.center[i])`, where the sizes and the heading were brought to the host
// above.
void find_host_handover(const Inquiry& inquiry, std::size_t operand) {
  constexpr int kSeveral = 2;
  if (inquiry.identities[operand].tensor == nullptr || !is_cuda_tensor(inquiry.identities[operand].tensor)) return;
  SourceFiles files;
  visit_calls_with(inquiry, inquiry.search.sighting(operand).place, [&](const Handed& handed, const void*) {
    const int brought = lines_for_host(SourceLines(files.whole(handed.at.file)), handed.at.line);
    if (brought < kSeveral) return;
    inquiry.found.add(trace::EvidenceKind::among_host_work_at, operand, handed.at, std::to_string(brought));
  });
}

}  // namespace devsan::hooks

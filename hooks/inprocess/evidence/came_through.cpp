// The variables that a value came through on its way to the operator: what the failing expression names, what those
// were assigned from, and what the calls that wait gave for arguments. Between operators a value is handed on by
// assignments, containers and calls which make nothing, so that no history knows of them.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hooks/inprocess/bridge/tensor_facts.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/evidence/call_frames.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/waiting_calls.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/interpreter/variable_stores.h"
#include "hooks/inprocess/provenance/lineage_nodes.h"
#include "hooks/inprocess/provenance/sites.h"
#include "hooks/inprocess/snapshot/named_objects.h"
#include "hooks/inprocess/snapshot/names.h"
#include "hooks/inprocess/source/python_calls.h"
#include "hooks/inprocess/source/python_names.h"
#include "hooks/inprocess/source/python_text.h"
#include "hooks/inprocess/source/source_files.h"
#include "trace/words.h"

namespace devsan::hooks {

namespace {

constexpr std::size_t kMaxUses = 48;
constexpr std::size_t kMaxLines = 10;
constexpr std::size_t kMaxStores = 3;       // of one variable: more than that tell nobody anything
constexpr std::size_t kMaxAttributes = 12;  // each is looked for in all code of the program

// What a function that runs has by a name when it has come to an instruction.
struct Use {
  const void* frame;
  int offset;
  std::string name;
};

class CameThrough {
 public:
  CameThrough(const Inquiry& inquiry, std::size_t operand)
      : inquiry_(inquiry), operand_(operand), device_(inquiry.operands[operand].device) {
    trace::LineageNode arrival{};
    visit_steps(inquiry.operands[operand].lineage, [&arrival](const trace::LineageNode& node) {
      arrival = node;
      return node.how == trace::How::derived;
    });
    arrival_ = call_frames(runtime.recorder->site(arrival.site).user, arrival.calls);
  }

  // From an expression of the frame that failed.
  void follow(const void* frame, std::string_view expression) {
    failing_ = waits_at(frame);
    use_names(frame, offset_in(frame), expression);
    for (std::size_t k = 0; k < uses_.size() && k < kMaxUses && lines_ < kMaxLines; ++k) {
      const Use use = uses_[k];
      follow(use);
    }
  }

 private:
  static int offset_in(const void* frame) { return frame_instruction(frame, frame_code(frame)); }

  void use_names(const void* frame, int offset, std::string_view expression) {
    for (const std::string& path : paths_of_variables(expression)) {
      std::string name = path.substr(0, path.find('.'));
      follow_attribute(frame, path);
      if (name == "self" || name == "cls") continue;
      const auto same = [&](const Use& use) { return use.frame == frame && use.offset == offset && use.name == name; };
      if (std::ranges::none_of(uses_, same)) uses_.push_back({frame, offset, std::move(name)});
    }
  }

  // Where the last attribute of a path is stored.
  void follow_attribute(const void* frame, const std::string& path) {
    const std::size_t dot = path.rfind('.');
    if (dot == path.npos || attributes_ == kMaxAttributes) return;
    const void* holder = object_behind(frame, path.substr(0, dot));
    if (holder == nullptr) return;
    WrittenLink link(std::string_view(path).substr(dot));
    visit_links(const_cast<void*>(holder), link);
    if (link.object() == nullptr || !may_lead_here(link.object())) return;
    ++attributes_;
    const void* name = link.found().name;
    add_all(attribute_stores(inquiry_, holder, name), path);
    const void* kept = link.object();
    if (is_dict(kept) || is_list(kept)) add_all(container_fills(inquiry_, name, key_of_operand()), path);
  }

  // "buf" of an operand that was found as an entry by this key; empty where it was found otherwise.
  std::string key_of_operand() const {
    const std::uint32_t at = inquiry_.search.sighting(operand_).place;
    if (at == kNoPlace || inquiry_.search.is_root(at)) return "";
    const Link& link = inquiry_.search.place(at).link;
    return link.kind == LinkKind::key && link.name != nullptr ? text_of(link.name) : std::string();
  }

  void add_all(const std::vector<Candidate>& lines, std::string_view name) {
    if (lines.size() > kMaxStores) return;
    for (const Candidate& one : lines) add(one.at, name);
  }

  // What a value may come through: a tensor on the operand's device, an array, a container or an object of the program.
  bool may_lead_here(const void* object) const {
    if (const c10::TensorImpl* tensor = inquiry_.search.tensor_at(object)) return device_slot_of(tensor) == device_;
    return leads_on(object) && !is_torch_module(object) && function_behind(object) == nullptr &&
           type_name(object) != "module";
  }

  void follow(const Use& use) {
    const auto place = variable_place(use.frame, use.name);
    if (!place || place->link.name == nullptr || !may_lead_here(place->object)) return;
    const void* code = frame_code(use.frame);
    if (place->link.kind == LinkKind::global && !is_module_body(code)) return follow_global(use);
    const ReachingStores stores = stores_reaching(ByteCode(code), use.offset, place->link.name);
    if (stores.offsets.size() > kMaxStores) return;
    for (const int offset : stores.offsets) follow_store(use, code, offset);
    if (stores.from_start) follow_argument(use);
  }

  void follow_global(const Use& use) {
    const void* body = module_frame(use.frame);
    if (body != nullptr) use_names(body, offset_in(body), use.name);
  }

  void follow_store(const Use& use, const void* code, int offset) {
    const trace::Position at = position_of(code, offset);
    add(at, use.name);
    if (is_arrival(at)) return;
    const SourceLines lines(files_.whole(at.file));
    use_names(use.frame, offset, assigned_text(statement_at(lines, at.line)));
  }

  void follow_argument(const Use& use) {
    const void* caller = caller_of(use.frame);
    if (caller == nullptr || !has_named_argument(frame_code(use.frame), use.name)) return;
    if (const auto handed = given_by(files_, caller, use.frame, use.name)) {
      return use_names(caller, offset_in(caller), handed->text);
    }
    // `f(*parts, **options)`
    const trace::Position at = waits_at(caller);
    const auto call = call_text(code_text(SourceLines(files_.whole(at.file)), at));
    if (!call) return;
    for (const std::string& argument : call->arguments) {
      if (argument.starts_with('*')) use_names(caller, offset_in(caller), argument);
    }
  }

  // Where it was made, or came to its device: what that was made from is another matter.
  bool is_arrival(const trace::Position& at) const {
    return std::ranges::any_of(arrival_, [&at](const trace::Position& one) { return same_line(one, at); });
  }

  void add(const trace::Position& at, std::string_view name) {
    const auto known = [&](const trace::EvidenceRecord& one) {
      return one.operand == operand_ && one.kind == trace::EvidenceKind::bound_at && same_line(one.at, at);
    };
    if (same_line(failing_, at) || std::ranges::any_of(inquiry_.found.records(), known)) return;
    inquiry_.found.add(trace::EvidenceKind::came_through_at, operand_, at, name);
    ++lines_;
  }

  const Inquiry& inquiry_;
  const std::size_t operand_;
  const trace::DeviceSlot device_;
  SourceFiles files_;
  trace::Position failing_{};
  std::vector<trace::Position> arrival_;
  std::vector<Use> uses_;
  std::size_t lines_ = 0;
  std::size_t attributes_ = 0;
};

// "self.cache" of `x + self.cache.pop("key")`: what the line takes out of a container is in there no longer, and goes
// by no name. Empty where it takes out nothing, or several things.
std::string container_emptied(const void* frame, SourceFiles& files) {
  constexpr std::array<std::string_view, 4> kTakers = {".pop(", ".popleft(", ".popitem(", ".get_nowait("};
  const trace::Position at = waits_at(frame);
  const std::string statement = statement_at(SourceLines(files.whole(at.file)), at.line);
  std::string found;
  for (const std::string_view taker : kTakers) {
    const std::size_t end = statement.find(taker);
    if (end == statement.npos) continue;
    if (!found.empty() || statement.find(taker, end + 1) != statement.npos) return "";
    const std::size_t begin = trace::begin_of_path(statement, end);
    found = statement.substr(begin, end - begin);
  }
  return found;
}

}  // namespace

void find_came_through(const Inquiry& inquiry, std::size_t operand) {
  const void* frame = program_frame(inquiry.innermost);
  if (frame == nullptr) return;
  const trace::OperandRecord& record = inquiry.operands[operand];
  SourceFiles files;
  std::string text(runtime.recorder->string(record.name));
  if (text.empty()) text = text_of_temporary(record, inquiry.site, files);
  if (text.empty()) text = container_emptied(frame, files);
  CameThrough(inquiry, operand).follow(frame, text);
}

}  // namespace devsan::hooks

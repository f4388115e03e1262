// A module keeps an object that is none, and that, or what it leads to, keeps a tensor: a transform of a distribution,
// a dataclass. Moving the module reaches neither.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/module_weights.h"
#include "hooks/inprocess/evidence/waiting_calls.h"
#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/source/python_text.h"
#include "hooks/inprocess/source/source_files.h"

namespace devsan::hooks {

namespace {

constexpr int kMaxFrames = 24;
constexpr std::size_t kMaxObjects = 64;
constexpr std::size_t kMaxLinks = 8;

// The objects that lead to an operand, from the inside, and the modules that keep one of them as a plain attribute.
struct Around {
  std::vector<const void*> objects;
  std::vector<Holding> modules;
};

bool is_plain(const Holding& holding) {
  return holding.link.kind == LinkKind::attribute || is_entry(holding.link.kind);
}

Around around(const Inquiry& inquiry, const void* object) {
  Around found{{object}, {}};
  std::size_t begin = 0;
  for (std::size_t links = 0; links < kMaxLinks; ++links) {
    const std::size_t end = found.objects.size();
    for (; begin < end; ++begin) {
      for (const Holding& holding : inquiry.search.holdings_of(found.objects[begin])) {
        const void* holder = holding.holder;
        if (!is_plain(holding) || is_function(holder) || is_builtin(holder, "method")) continue;
        if (is_torch_module(holder)) {
          if (holding.link.kind == LinkKind::attribute && links > 0) found.modules.push_back(holding);
        } else if (found.objects.size() < kMaxObjects &&
                   std::ranges::find(found.objects, holder) == found.objects.end()) {
          found.objects.push_back(holder);
        }
      }
    }
  }
  return found;
}

// Code that a person can change: not a library's, nor what Python writes itself for a dataclass.
bool is_own(const trace::Position& at) {
  const std::string_view file = runtime.recorder->string(at.file);
  return !file.starts_with('<') && file.find("-packages/") == file.npos;
}

// An attribute that no line of the program stores: a library's object, or one of a class that Python writes itself, as
// a dataclass or a named tuple is. What the program stores belongs to the object whose line that is.
bool is_kept_by_others(const Inquiry& inquiry, const Holding& holding) {
  if (holding.link.kind == LinkKind::index) return !link_name(holding.link).empty();
  if (holding.link.kind != LinkKind::attribute || holding.link.name == nullptr) return false;
  return std::ranges::none_of(attribute_stores(inquiry, holding.holder, holding.link.name),
                              [](const Candidate& one) { return is_own(one.at); });
}

bool is_held_by_others(const Inquiry& inquiry, const void* object) {
  const std::vector<Holding> holdings = inquiry.search.holdings_of(object);
  bool any = false;
  for (const Holding& holding : holdings) {
    if (is_entry(holding.link.kind) && link_name(holding.link).empty()) continue;
    if (!is_kept_by_others(inquiry, holding)) return false;
    any = true;
  }
  return any;
}

// The failing function has a variable that leads to the operand by another way than through these objects.
bool is_known_otherwise(const Inquiry& inquiry, std::size_t operand, const Around& way, const void* module) {
  std::uint32_t at = inquiry.search.sighting(operand).place;
  while (at != kNoPlace && !inquiry.search.is_root(at)) at = inquiry.search.place(at).parent;
  if (at == kNoPlace) return true;
  const Place& root = inquiry.search.place(at);
  if (root.link.kind != LinkKind::local || root.frame != program_frame(inquiry.innermost)) return false;
  const bool on_way = std::ranges::find(way.objects, root.object) != way.objects.end();
  return root.object != module && (!on_way || root.object == way.objects.front());
}

// The weights of the module, or of the nearest one around it that has some, are all where the operand is missed.
bool has_weights_elsewhere(const Inquiry& inquiry, std::size_t operand, const void* module) {
  Weights weights(inquiry.search, module);
  for (const Holding* outer : inquiry.search.outwards(inquiry.search.parent_module(module))) {
    if (!weights.empty()) break;
    weights = Weights(inquiry.search, outer->holder);
  }
  const auto device = weights.only();
  return device && inquiry.is_wanted(operand, *device);
}

// Of several modules that are running and keep something that leads there, the one whose running line names it.
std::optional<Holding> kept_by_running(const Inquiry& inquiry, const Around& way) {
  SourceFiles files;
  std::vector<Holding> running;
  std::vector<Holding> named;
  const void* frame = program_frame(inquiry.innermost);
  for (int depth = 0; frame != nullptr && depth < kMaxFrames; ++depth, frame = caller_of(frame)) {
    const void* module = module_called(frame);
    if (module == nullptr) continue;
    const trace::Position now = waits_at(frame);
    const std::string statement = statement_at(SourceLines(files.whole(now.file)), now.line);
    for (const Holding& holding : way.modules) {
      if (holding.holder != module) continue;
      const auto is_same = [&](const Holding& one) {
        return one.holder == module && link_name(one.link) == link_name(holding.link);
      };
      if (std::ranges::none_of(running, is_same)) running.push_back(holding);
      const bool mentions = mentions_name(statement, link_name(holding.link));
      if (mentions && std::ranges::none_of(named, is_same)) named.push_back(holding);
    }
  }
  if (named.size() == 1) return named.front();
  return running.size() == 1 ? std::optional(running.front()) : std::nullopt;
}

}  // namespace

void find_within_module(const Inquiry& inquiry, std::size_t operand) {
  const void* object = inquiry.identities[operand].object;
  const Sighting& sighting = inquiry.search.sighting(operand);
  if (object == nullptr || sighting.base || sighting.gradient || inquiry.search.owner(object) != nullptr) return;
  const Around way = around(inquiry, object);
  if (way.modules.empty() || !is_held_by_others(inquiry, object)) return;
  const auto kept = kept_by_running(inquiry, way);
  if (!kept || is_known_otherwise(inquiry, operand, way, kept->holder)) return;
  if (!has_weights_elsewhere(inquiry, operand, kept->holder)) return;
  const auto stored = choose(inquiry, operand, attribute_stores(inquiry, kept->holder, kept->link.name));
  if (!stored) return;
  inquiry.found.add(trace::EvidenceKind::within_module_at, operand, *stored,
                    std::string(type_name(kept->holder)) + written(kept->link));
}

}  // namespace devsan::hooks

// Modules that were moved one by one, as a list, a table or a call names them; and one beside them that it leaves out.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hooks/inprocess/bridge/tensor_facts.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/listing.h"
#include "hooks/inprocess/evidence/module_weights.h"
#include "hooks/inprocess/evidence/waiting_calls.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/provenance/large_page.h"
#include "hooks/inprocess/provenance/sites.h"
#include "hooks/inprocess/source/python_text.h"

namespace devsan::hooks {

namespace {

constexpr int kMaxFrames = 32;
constexpr std::size_t kMaxModules = 256;
constexpr std::size_t kSeveral = 2;

std::string name_of(const Link& link) {
  std::string name = written(link);
  if (name.starts_with('.')) name.erase(0, 1);
  return name;
}

// The history of the first weight at or below a module that has one.
trace::LineageId history_of_weights(const ObjectSearch& search, const void* module) {
  trace::LineageId found = trace::LineageId::none;
  visit_weights(search, module, [&found](const c10::TensorImpl& weight) {
    const c10::StorageImpl* storage = storage_of(&weight);
    if (storage != nullptr) found = origin_table().find(storage);
    return found == trace::LineageId::none;
  });
  return found;
}

// The modules that an object, or the variables of a function, hold beside the one that stayed, by the line that moved
// them to where that is missed.
class MovedModules final : public LinkVisitor {
 public:
  MovedModules(const Inquiry& inquiry, std::size_t operand, const std::vector<const void*>& own)
      : inquiry_(inquiry), operand_(operand), own_(own) {}

  struct Move {
    trace::LineageNode node{};
    std::vector<std::string> names;
    std::vector<const void*> modules;
  };
  const std::map<trace::SiteId, Move>& all() const { return moves_; }
  // The line that moved most of them; null where nothing was moved.
  const Move* usual() const {
    const auto size = [](const auto& entry) { return entry.second.names.size(); };
    const auto most = std::ranges::max_element(moves_, {}, size);
    return most != moves_.end() ? &most->second : nullptr;
  }

  bool link(const Link& link, void* object) override {
    const bool itself = std::ranges::find(own_, object) != own_.end();
    if (itself || link.kind == LinkKind::parameter || link.kind == LinkKind::buffer || !is_torch_module(object)) {
      return true;
    }
    const trace::LineageId id = history_of_weights(inquiry_.search, object);
    if (id == trace::LineageId::none) return true;
    const trace::LineageNode node = runtime.recorder->lineage(id);
    if (node.how != trace::How::moved || !inquiry_.is_wanted(operand_, node.device)) return true;
    Move& move = moves_[node.site];
    move.node = node;
    move.names.push_back(name_of(link));
    move.modules.push_back(object);
    return moves_.size() < kMaxModules;
  }

 private:
  const Inquiry& inquiry_;
  const std::size_t operand_;
  const std::vector<const void*>& own_;
  std::map<trace::SiteId, Move> moves_;
};

// What the variables of a frame hold, shown to another visitor, too.
class Variables final : public LinkVisitor {
 public:
  Variables(const void* frame, MovedModules& modules) : modules_(modules) {
    visit_frame(frame, is_module_body(frame_code(frame)), *this);
  }
  bool has(const void* object) const { return std::ranges::find(objects_, object) != objects_.end(); }
  bool link(const Link& link, void* object) override {
    objects_.push_back(object);
    return modules_.link(link, object) && objects_.size() < kMaxVariables;
  }

 private:
  static constexpr std::size_t kMaxVariables = 4096;
  MovedModules& modules_;
  std::vector<const void*> objects_;
};

std::size_t mentioned(std::string_view text, const std::vector<std::string>& names) {
  const auto named = [text](const std::string& name) { return mentions_name(text, name); };
  return static_cast<std::size_t>(std::ranges::count_if(names, named));
}

// `if "adapter" in name:` inside of the loop that moves what it goes through: what has another name, or is of another
// type, is not moved. None where the line is moved under no such condition.
std::optional<trace::Position> chosen_by(const trace::Position& moved) {
  const auto loop = loop_around(moved);
  if (!loop) return std::nullopt;
  SourceFiles files;
  const SourceLines lines(files.whole(moved.file));
  const int condition = enclosing_line(lines, moved.line, "if ");
  if (condition <= loop->line) return std::nullopt;
  const std::string text = statement_at(lines, condition);
  const bool by_kind = text.find('"') != text.npos || text.find('\'') != text.npos ||
                       call_in(text, "isinstance") != text.npos || call_in(text, "hasattr") != text.npos;
  if (!by_kind) return std::nullopt;
  return position_at(moved.file, condition, qualified_function(lines, condition));
}

// The line itself names several: `nn.ModuleList([a, b]).to(device)`, `a, b = a.to(device), b.to(device)`.
std::optional<Listing::Found> named_where_moved(const trace::Position& moved, const std::vector<std::string>& names) {
  SourceFiles files;
  const SourceLines lines(files.whole(moved.file));
  std::string statement = statement_at(lines, moved.line);
  if (mentioned(statement, names) < kSeveral) return std::nullopt;
  return Listing::Found{moved, std::move(statement)};
}

class LeftOut {
 public:
  LeftOut(const Inquiry& inquiry, std::size_t operand) : inquiry_(inquiry), operand_(operand) {}

  // From the module that owns the operand outwards, until the others around it were moved by a list.
  void find() {
    for (const Holding* at : inquiry_.search.outwards(weight_behind(inquiry_, operand_))) {
      const void* module = at->holder;
      own_.push_back(module);
      const Holding* parent = inquiry_.search.parent_module(module);
      const std::vector<Holding> holdings = inquiry_.search.holdings_of(module);
      note_names(module, parent, holdings);
      if (parent != nullptr && look_at(parent->holder)) return;
      for (const Holding& holding : holdings) {
        if (holding.link.kind == LinkKind::attribute && look_at(holding.holder)) return;
      }
      if (look_at_variables(module)) return;
    }
  }

 private:
  void note_names(const void* module, const Holding* parent, const std::vector<Holding>& holdings) {
    const std::size_t before = names_.size();
    if (parent != nullptr) names_.push_back(name_of(parent->link));
    for (const Holding& holding : holdings) {
      if (holding.link.kind == LinkKind::attribute) names_.push_back(name_of(holding.link));
    }
    const std::uint32_t at = inquiry_.search.find_place(module);
    if (at != kNoPlace && inquiry_.search.is_root(at)) {
      const std::string name = written(inquiry_.search.place(at).link);
      if (name != "self") names_.push_back(name);
    }
    own_name_ = names_.size() > before ? names_[before] : "";
  }

  bool look_at(const void* holder) {
    MovedModules modules(inquiry_, operand_, own_);
    visit_links(const_cast<void*>(holder), modules);
    return report(modules);
  }

  // The functions of the program that have the module in a variable.
  bool look_at_variables(const void* module) {
    const void* frame = program_frame(inquiry_.innermost);
    for (int depth = 0; frame != nullptr && depth < kMaxFrames; ++depth, frame = caller_of(frame)) {
      MovedModules modules(inquiry_, operand_, own_);
      const Variables variables(frame, modules);
      if (variables.has(module) && report(modules)) return true;
    }
    return false;
  }

  bool report(const MovedModules& modules) { return report_listed(modules.usual()) || report_named(modules); }

  bool report_listed(const MovedModules::Move* move) {
    if (move == nullptr || own_name_.empty()) return false;
    const trace::Position moved = runtime.recorder->site(move->node.site).user;
    auto listed = named_where_moved(moved, move->names);
    if (!listed) listed = Listing(moved, move->node.calls).find();
    if (!listed && move->names.size() >= kSeveral) {
      if (const auto condition = chosen_by(moved)) {
        inquiry_.found.add(trace::EvidenceKind::modules_moved_at, operand_, moved, move->names.front());
        inquiry_.found.add(trace::EvidenceKind::modules_chosen_at, operand_, *condition, own_name_);
        return true;
      }
    }
    if (!listed || mentioned(listed->text, move->names) == 0 || mentioned(listed->text, names_) != 0) return false;
    inquiry_.found.add(trace::EvidenceKind::modules_moved_at, operand_, moved, move->names.front());
    inquiry_.found.add(trace::EvidenceKind::modules_listed_at, operand_, listed->at, own_name_);
    return true;
  }

  // Whether a line moved all of what it names, and no part of it.
  bool is_whole(const MovedModules::Move& move) const {
    return std::ranges::all_of(
        move.modules, [&](const void* module) { return Weights(inquiry_.search, module).only() == move.node.device; });
  }

  // `model.embed = model.embed.to(device)`, and `model.layers[0].to(device)` on another line: a line for each.
  bool report_named(const MovedModules& modules) {
    if (own_name_.empty() || modules.all().size() < kSeveral) return false;
    SourceFiles files;
    std::optional<trace::Position> last;
    std::string name;
    for (const auto& [site, move] : modules.all()) {
      const trace::Position moved = runtime.recorder->site(site).user;
      const SourceLines lines(files.whole(moved.file));
      const std::string statement = statement_at(lines, moved.line);
      if (mentioned(statement, move.names) == 0 || mentioned(statement, names_) != 0) return false;
      if (!is_whole(move) || (last && (last->file != moved.file || last->line > moved.line))) continue;
      last = moved;
      name = move.names.front();
    }
    if (!last) return false;
    inquiry_.found.add(trace::EvidenceKind::modules_moved_at, operand_, *last, name);
    inquiry_.found.add(trace::EvidenceKind::modules_named_at, operand_, *last, own_name_);
    return true;
  }

  const Inquiry& inquiry_;
  const std::size_t operand_;
  std::vector<const void*> own_;    // the modules that stayed
  std::vector<std::string> names_;  // all that these go by
  std::string own_name_;            // what the last of them goes by
};

}  // namespace

void find_moved_modules(const Inquiry& inquiry, std::size_t operand) {
  LeftOut(inquiry, operand).find();
}

}  // namespace devsan::hooks

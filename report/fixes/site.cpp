#include "report/fixes/site.h"

#include <algorithm>

#include "report/fixes/device_value.h"
#include "report/program/definitions.h"
#include "report/program/positions.h"
#include "report/program/source_file.h"
#include "report/slice/torch_names.h"

namespace devsan::report::fixes {

using program::Node;
using slice::Place;
using slice::Role;
using slice::Side;

namespace {

const Operand* odd_operand(const Finding& finding) {
  const auto marked = std::ranges::find_if(finding.operands, &Operand::odd);
  if (marked != finding.operands.end()) return &*marked;
  const auto host = std::ranges::find_if(finding.operands, &Operand::on_cpu);
  if (host != finding.operands.end()) return &*host;
  return finding.operands.empty() ? nullptr : &finding.operands.front();
}

// Tensors say most reliably where they are.
const Operand* other_operand(const Finding& finding, const Operand& odd) {
  const Operand* found = nullptr;
  for (const Operand& one : finding.operands) {
    if (&one == &odd || one.device == odd.device) continue;
    const bool tensor = !one.generator && !one.device_argument && !one.number;
    if (found == nullptr || (tensor && (found->generator || found->device_argument))) found = &one;
  }
  return found;
}

bool is_step(Role role) {
  return role == Role::history_created || role == Role::history_moved || role == Role::history_derived;
}

// -1: a step of its history; 0: the way of the operand leads through the place; 1: nothing is known; 2: it does not.
int doubt(const Place& place) {
  if (is_step(place.role)) return -1;
  return !place.leads_to_origin ? 1 : *place.leads_to_origin ? 0 : 2;
}

constexpr int kNoPlace = 3;

int least_doubt(const ranking::Candidate& candidate, Side side) {
  int least = kNoPlace;
  for (const Place* one : candidate.places) {
    if (one->side == side) least = std::min(least, doubt(*one));
  }
  return least;
}

// What the statement fills by `x.append(v)` and the like; empty for others.
std::string_view filled_by(Node statement) {
  const program::CallParts call =
      program::call_parts(statement.is(program::Kind::ExpressionStatement) ? statement.only_child() : Node());
  return call.receiver() && slice::fills_container(call.method()) ? slice::last_name(call.receiver())
                                                                  : std::string_view();
}

// The operand got its device where another line fills the same container.
bool is_filled_elsewhere(const Operand& operand, const ranking::Candidate& candidate) {
  const std::string_view filled = filled_by(candidate.statement);
  if (filled.empty()) return false;
  for (const LineageStep& step : operand.lineage) {
    if (step.at.file != candidate.file->path()) continue;
    if (step.at.line == candidate.line) return false;
    if (filled_by(program::statement_at(*candidate.file, step.at.line)) == filled) return true;
  }
  return false;
}

// The line lies on the way of the other operand rather than on that of the odd one.
bool belongs_to_other(const ranking::Candidate& candidate, const Operand& odd) {
  const int other = least_doubt(candidate, Side::other);
  if (other == kNoPlace) return false;
  const int own = least_doubt(candidate, Side::odd);
  const bool used = std::ranges::any_of(
      candidate.places, [](const Place* one) { return one->role == Role::used && one->side == Side::odd; });
  if (used) return false;
  return own == kNoPlace || (other <= 0 && own > other) || (other < 2 && own == 2) ||
         is_filled_elsewhere(odd, candidate);
}

}  // namespace

std::optional<Site> site_of(const Finding& finding, const ranking::Candidate& candidate, const slice::Code& code) {
  const Operand* odd = odd_operand(finding);
  if (odd == nullptr || candidate.file == nullptr || !candidate.statement) return std::nullopt;
  const Operand* other = other_operand(finding, *odd);
  Site site{finding, candidate, code, odd, other};
  const bool swapped = other != nullptr && belongs_to_other(candidate, *odd);
  if (swapped) std::swap(site.moved, site.wanted);
  if (site.wanted == nullptr && odd->on_cpu()) return std::nullopt;
  site.away = swapped && site.wanted->on_cpu();
  const bool astray = least_doubt(candidate, Side::odd) == 2 && least_doubt(candidate, Side::other) > 0;
  if (site.away && astray) return std::nullopt;
  site.device = site.wanted != nullptr ? site.wanted->device : "cpu";
  for (const Place* place : candidate.places) {
    const bool own = place->side == (swapped ? Side::other : Side::odd);
    if (own || place->side == Side::program) site.places.push_back(place);
  }
  std::ranges::stable_sort(site.places, {}, [](const Place* one) {
    return std::tuple(one->side == Side::program, doubt(*one), one->distance);
  });
  return site;
}

std::string Site::device_text() const {
  return device == finding.own_device ? "cuda" : device;
}

bool Site::is_there(std::string_view said) const {
  return device == finding.own_device ? said == "cuda" || said == device : is_same_device(said, device);
}

bool Site::is_at(const Frame& frame) const {
  return frame.line == candidate.line && frame.file == file().path();
}

bool Site::in_history() const {
  return std::ranges::any_of(moved->lineage, [&](const LineageStep& step) { return is_at(step.at); });
}

bool Site::is_on_way(const Place& place) const {
  if (place.side == Side::program || place.aspect == slice::Aspect::device) return false;
  if (in_history()) return true;
  constexpr double kNear = 4;  // steps from the use, in which a way that is not known to lead elsewhere counts
  return place.leads_to_origin.value_or(place.distance <= kNear);
}

bool Site::has(Role role) const {
  return std::ranges::any_of(places, [&](const Place* one) { return one->role == role; });
}

bool Site::is_written(const Operand& operand) const {
  const std::string_view name = std::string_view(finding.op).substr(0, finding.op.find('.'));
  return (name.ends_with('_') && operand.arg == "self") || operand.arg == "out";
}

Node Site::failing_function() const {
  return finding.where ? code.function_at(*finding.where) : Node();
}

Node Site::failing_statement() const {
  return finding.where ? program::statement_of(code.node_at(*finding.where)) : Node();
}

std::string as_code(std::string_view text) {
  constexpr std::size_t kLongest = 50;
  std::string line;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\n' || c == '\t';
    if (!blank) line += c;
    if (blank && !line.empty() && line.back() != ' ') line += ' ';
  }
  if (line.size() <= kLongest) return "`" + line + "`";
  std::size_t end = kLongest;
  while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xc0U) == 0x80U) --end;
  return "`" + line.substr(0, end) + "…`";
}

bool imports(const program::SourceFile& file, std::string_view module) {
  const auto found = file.definitions().of_name(file.scopes().module(), module);
  return std::ranges::any_of(found, [&](const program::Definition* one) { return one->origin == module; });
}

std::string move_to(std::string_view device) {
  return device == "'cpu'" ? ".cpu()" : ".to(" + std::string(device) + ")";
}

std::string moved_names(const std::vector<std::string>& names, std::string_view device) {
  std::string targets;
  std::string values;
  for (const std::string& name : names) {
    targets += (targets.empty() ? "" : ", ") + name;
    values += (values.empty() ? "" : ", ") + name + move_to(device);
  }
  return targets + " = " + values;
}

}  // namespace devsan::report::fixes

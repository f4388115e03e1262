#include "report/fixes/patch.h"

#include "report/fixes/site.h"
#include "report/program/source_file.h"

namespace devsan::report::fixes {
namespace {

using Writer = MaybeChange (*)(const Site&);

struct Way {
  Writer write;
  bool away;  // fit for a value that others may want where it is
};

// What the line does with a device decides, before what could be added to it.
constexpr Way kWays[] = {{&take_result, false}, {&register_buffer, false}, {&draw_there, true},
                         {&give_device, true},  {&correct_move, false},    {&correct_device, false},
                         {&copy_object, false}, {&move_object, false},     {&give_argument, false},
                         {&extend_key, true},   {&ask_device, true},       {&move_beside, false},
                         {&take_moved, true},   {&move_parts, true},       {&move_operand, true},
                         {&move_value, true},   {&move_target, true}};

std::optional<Patch> patch_of(const program::SourceFile& file, Change change) {
  const auto changed = program::apply(file.text(), std::move(change.edits));
  if (!changed || *changed == file.text() || !program::parses(*changed)) return std::nullopt;
  return Patch{file.path(), program::as_unified_diff(file.path(), file.text(), *changed), std::move(change.text)};
}

}  // namespace

std::optional<Patch> patch_for(const Finding& finding, const ranking::Candidate& candidate, const slice::Code& code) {
  const auto site = site_of(finding, candidate, code);
  if (!site || site->file().has_errors()) return std::nullopt;
  for (const Way& way : kWays) {
    auto change = site->away && !way.away ? std::nullopt : way.write(*site);
    if (!change) continue;
    if (auto patch = patch_of(site->file(), std::move(*change))) return patch;
  }
  return std::nullopt;
}

}  // namespace devsan::report::fixes

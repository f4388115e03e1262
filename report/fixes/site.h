// A line to change, with the operand that the change is to bring to another device.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/model/finding.h"
#include "report/program/edits.h"
#include "report/program/expressions.h"
#include "report/ranking/candidate.h"
#include "report/slice/code.h"
#include "report/slice/slice.h"

namespace devsan::report::fixes {

struct Site {
  const Finding& finding;
  const ranking::Candidate& candidate;
  const slice::Code& code;
  const Operand* moved = nullptr;   // that is to be elsewhere
  const Operand* wanted = nullptr;  // that is there; null where only the device is known
  bool away = false;                // what works on an accelerator is brought to the host, for the odd one's sake
  std::string device{};             // of `wanted`
  std::vector<const slice::Place*> places{};  // those of the moved operand's side, the likeliest first

  // `device` as the program's text can say it. Every rank runs that text: its own GPU is "cuda", the current one.
  std::string device_text() const;
  // What says `said` is on `device` already.
  bool is_there(std::string_view said) const;

  const program::SourceFile& file() const { return *candidate.file; }
  program::Node statement() const { return candidate.statement; }
  // The value there is, or becomes, the operand.
  bool is_on_way(const slice::Place& place) const;
  bool has(slice::Role role) const;
  bool is_at(const Frame& frame) const;
  bool in_history() const;  // of the moved operand
  // The operator writes to the operand: what is moved would be a copy.
  bool is_written(const Operand& operand) const;
  // The function, lambda or module that the failing line runs in.
  program::Node failing_function() const;
  program::Node failing_statement() const;
};

// None where the finding has no operand that could be elsewhere.
std::optional<Site> site_of(const Finding& finding, const ranking::Candidate& candidate, const slice::Code& code);

// Edits of one file that belong together, and what they do.
struct Change {
  std::vector<program::Edit> edits;
  std::string text;
};
using MaybeChange = std::optional<Change>;

// Ways to change a line, each where the line is of its kind. In the files change_*.cpp.
MaybeChange take_result(const Site& site);      // x.to(d)  ->  x = x.to(d)
MaybeChange register_buffer(const Site& site);  // self.x = v  ->  self.register_buffer('x', v)
MaybeChange draw_there(const Site& site);       // f(generator=g, device=d)  ->  f(generator=g, device=g.device).to(d)
MaybeChange give_device(const Site& site);      // torch.zeros(3)  ->  torch.zeros(3, device=d)
MaybeChange correct_move(const Site& site);     // x.cpu()  ->  x.to(d)
MaybeChange correct_device(const Site& site);   // torch.device("cpu")  ->  torch.device("cuda:0")
MaybeChange copy_object(const Site& site);      // self.net = other.net  ->  self.net = copy.deepcopy(other.net)
MaybeChange move_object(const Site& site);      // Net()  ->  Net().to(d)
MaybeChange give_argument(const Site& site);    // f(x)  ->  f(x, device=d)
MaybeChange extend_key(const Site& site);       // key = (n, dtype)  ->  key = (n, dtype, d)
MaybeChange ask_device(const Site& site);       // if self.x is None:  ->  if self.x is None or self.x.device != d:
MaybeChange move_beside(const Site& site);      // self.x = self.x.to(d)  ->  and self.y = self.y.to(d) behind it
MaybeChange move_parts(const Site& site);       // self.xs = xs  ->  self.xs = [one.to(d) for one in xs]
MaybeChange take_moved(const Site& site);       // f(x)  ->  f(y), behind y = x.to(d)
MaybeChange move_operand(const Site& site);     // x + y  ->  x + y.to(d), where that fails
MaybeChange move_value(const Site& site);       // x = f()  ->  x = f().to(d)
MaybeChange move_target(const Site& site);      // for x in y:  ->  … x = x.to(d)

// "`x = …` …" for sentences: the text, cut where it is long.
std::string as_code(std::string_view text);
// The file imports the module, by its name.
bool imports(const program::SourceFile& file, std::string_view module);
// ".to(d)", or ".cpu()".
std::string move_to(std::string_view device);
// "x, y = x.to(d), y.to(d)"
std::string moved_names(const std::vector<std::string>& names, std::string_view device);

}  // namespace devsan::report::fixes

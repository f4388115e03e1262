// An object that is no module keeps a tensor, and has a method by which it moves that, `to` or `cuda`. Nothing called
// it: whoever made the object moved the model, and not what the model works with.
#include <string>
#include <string_view>

#include "report/frames.h"
#include "report/statement_text.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

// `solver.to('cuda:0')`; "its `to('cuda:0')`" where the line gives the object no name.
std::string call_of(const Frame& made, std::string_view method, std::string_view device) {
  const std::string given = method == "cuda" ? "" : "'" + std::string(device) + "'";
  const std::string call = std::string(method) + "(" + given + ")";
  const auto assigned = split_assignment(made.statement());
  return assigned ? "`" + std::string(assigned->target) + "." + call + "`" : "its `" + call + "`";
}

}  // namespace

std::optional<Explanation> own_move_not_called(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !pair->odd.on_cpu() || !on_accelerator(pair->wanted) || !was_never_moved(pair->odd)) return std::nullopt;
  const Evidence* made = place_of(pair->odd, trace::EvidenceKind::own_move_unused_at, finding);
  if (made == nullptr) return std::nullopt;
  const std::string type = type_of_path(made->text);
  const std::string method(attribute_of_path(made->text));
  return Explanation{
      cause_at(made->at, pair->odd,
               "A `" + type + "` is made here, and keeps " + mention(pair->odd) + " on the CPU. Its own `" + method +
                   "()` would move that, and was not called."),
      Fix{made->at.file, made->at.line,
          "Call " + call_of(made->at, method, pair->wanted.device) + " behind this line, before it is used."}};
}

}  // namespace devsan::report::why

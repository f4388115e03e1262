// Under a default device, what is made without one is on that. An object that was told another device, and computes
// with such, has the one line that asks nobody.
#include <string>

#include "report/frames.h"
#include "report/statement_text.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {

namespace {

// A mode of torch's own gave the factory the device.
bool is_by_default(const LineageStep& step) {
  return step.innermost.file.ends_with("/torch/utils/_device.py");
}

}  // namespace

std::optional<Explanation> made_by_default_device(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair) return std::nullopt;
  const LineageStep* told = arrival_of(pair->odd);
  const LineageStep* made = arrival_of(pair->wanted);
  if (told == nullptr || made == nullptr || !names_device(told->at) || names_device_itself(told->at))
    return std::nullopt;
  const bool silent = is_by_default(*made) && !names_device(made->at) && !made_like_another(made->at);
  if (!silent || !is_changeable(made->at, finding) || is_beginning(made->at)) return std::nullopt;
  const std::string edit = with_argument(call_at(made->at), "device=" + device_at(made->at, pair->odd, finding));
  return Explanation{
      cause_at(made->at, pair->wanted,
               "This line makes its tensor on " + spoken_device(pair->wanted.device) +
                   ", the default device, since it names none. What that meets, " + mention(pair->odd) +
                   ", was told to be on " + spoken_device(pair->odd.device) + ", in " + short_place(told->at) + "."),
      Fix{made->at.file, made->at.line, "Name the device here, too" + (edit.empty() ? "." : ": `" + edit + "`.")}};
}

}  // namespace devsan::report::why

#include <nlohmann/json.hpp>

#include "report/render/render_json.h"
#include "report/render/render_json_parts.h"

namespace devsan::report {
namespace {

// Each of the last collectives of each process names its group's ranks: of larger groups that would be most of a
// report.
constexpr std::size_t kMostGroupRanks = 64;

Json frame_or_null(const std::optional<Frame>& where) {
  return where ? frame_json(*where) : Json(nullptr);
}

Json threads_json(const std::vector<ThreadStack>& threads) {
  Json json = Json::array();
  for (const ThreadStack& thread : threads) {
    json.push_back({{"name", text_or_null(thread.name)},
                    {"tid", thread.tid != 0 ? Json(thread.tid) : Json(nullptr)},
                    {"stack", stack_json(thread.frames)}});
  }
  return json;
}

}  // namespace

Json collective_json(const CollectiveStory& story, Detail detail) {
  Json json = {{"name", text_or_null(story.name)},    {"group", text_or_null(story.group)},
               {"group_ranks", story.group_ranks},    {"sequence", story.sequence},
               {"dtype", text_or_null(story.dtype)},  {"bytes", story.bytes},
               {"device", text_or_null(story.device)}};
  if (story.waited_ns > 0) json["waited_ns"] = story.waited_ns;
  json["per_rank"] = Json::array();
  for (const RankInCollective& turn : story.per_rank) {
    Json entry = {{"rank", turn.rank},
                  {"state", name_of(turn.state)},
                  {"where", frame_or_null(turn.where)},
                  {"what", text_or_null(turn.what)}};
    const bool with_stacks = detail == Detail::all || turn.state != RankTurn::waiting;
    if (with_stacks && !turn.threads.empty()) entry["threads"] = threads_json(turn.threads);
    json["per_rank"].push_back(std::move(entry));
  }
  return json;
}

Json first_failure_json(const std::optional<FirstFailure>& failure, Detail detail) {
  if (!failure) return nullptr;
  Json json = {{"rank", failure->rank ? Json(*failure->rank) : Json(nullptr)},
               {"step", failure->step},
               {"time_ns", failure->time_ns},
               {"finding", text_or_null(failure->finding)},
               {"where", frame_or_null(failure->where)},
               {"what", text_or_null(failure->what)}};
  if (failure->last_operator) json["last_operator"] = frame_json(*failure->last_operator);
  if (!failure->missing.empty()) json["missing"] = failure->missing;
  // What others waited in for ranks that never came is the collective of the finding, which the page has.
  const bool told = detail == Detail::page && !failure->missing.empty() && !failure->finding.empty();
  json["waiting"] = failure->waiting && !told ? collective_json(*failure->waiting, detail) : Json(nullptr);
  return json;
}

Json earlier_failure_json(const EarlierFailure& earlier) {
  const FirstFailure& failure = earlier.failure;
  Json json = {{"attempt", earlier.attempt},
               {"rank", failure.rank.value_or(0)},
               {"step", failure.step},
               {"where", frame_or_null(failure.where)},
               {"what", failure.what}};
  if (failure.last_operator) json["last_operator"] = frame_json(*failure.last_operator);
  return json;
}

void add_collectives_json(Json& json, const Process& process) {
  if (process.collectives == 0) return;
  Json last = Json::array();
  for (const CollectiveCall& call : process.last_collectives) {
    const bool names_all = call.group_ranks && call.group_ranks->size() <= kMostGroupRanks;
    Json entry = {{"name", call.name},
                  {"group", text_or_null(call.group)},
                  {"group_ranks", names_all ? *call.group_ranks : std::vector<int>()},
                  {"sequence", call.sequence},
                  {"peer", call.peer ? Json(*call.peer) : Json(nullptr)},
                  {"bytes", call.bytes},
                  {"dtype", text_or_null(call.dtype)},
                  {"device", text_or_null(call.device)},
                  {"state", call.state},
                  {"end_told", call.end_told},
                  {"captured", call.captured},
                  {"where", frame_or_null(call.where)},
                  {"step", call.step}};
    if (call.group_ranks && !names_all) entry["group_size"] = call.group_ranks->size();
    entry["entered_ns"] = call.entered_ns;
    entry["wait_ns"] = call.wait_ns == 0 ? Json(nullptr) : Json(call.wait_ns);
    entry["finished_ns"] = call.finished_ns == 0 ? Json(nullptr) : Json(call.finished_ns);
    last.push_back(std::move(entry));
  }
  json["collectives"] = {{"entered", process.collectives}, {"last", std::move(last)}};
}

}  // namespace devsan::report

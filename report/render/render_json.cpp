#include "report/render/render_json.h"

#include <array>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

#include "report/render/render_json_parts.h"

namespace devsan::report {

Json text_or_null(std::string_view text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

// A place without the details that only a stack needs.
static Json place_json(const Frame& frame) {
  return {{"file", frame.file}, {"line", frame.line}, {"function", text_or_null(frame.function)}};
}

Json frame_json(const Frame& frame) {
  Json json = place_json(frame);
  json["source"] = text_or_null(frame.source);
  json["end_line"] = frame.end_line;
  json["column"] = frame.column < 0 ? Json(nullptr) : Json(frame.column);
  json["end_column"] = frame.end_column < 0 ? Json(nullptr) : Json(frame.end_column);
  json["torch"] = frame.torch;
  json["library"] = frame.library;
  return json;
}

Json stack_json(const std::vector<Frame>& frames) {
  Json json = Json::array();
  for (const Frame& frame : frames) json.push_back(frame_json(frame));
  return json;
}

namespace {

Json time_or_null(std::int64_t time_ns) {
  return text_or_null(iso_time(time_ns));
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json calls_json(const std::vector<Frame>& calls) {
  Json json = Json::array();
  for (const Frame& call : calls) {
    Json entry = place_json(call);
    entry["source"] = text_or_null(call.source);
    json.push_back(std::move(entry));
  }
  return json;
}

Json lineage_json(const std::vector<LineageStep>& lineage) {
  Json json = Json::array();
  for (const LineageStep& step : lineage) {
    Json entry = place_json(step.at);
    entry["op"] = text_or_null(step.op);
    entry["how"] = name_of(step.how);
    entry["device"] = text_or_null(step.device);
    entry["source"] = text_or_null(step.at.source);
    if (!step.calls.empty()) entry["calls"] = calls_json(step.calls);
    if (!step.within.empty()) entry["within"] = calls_json(step.within);
    json.push_back(std::move(entry));
  }
  return json;
}

Json operand_json(const Operand& operand) {
  Json json = {{"arg", operand.arg},
               {"name", text_or_null(operand.name)},
               {"text", text_or_null(operand.text)},
               {"device", text_or_null(operand.device)}};
  json["shape"] = or_null(operand.shape);
  if (operand.hidden_dims > 0) json["hidden_dims"] = operand.hidden_dims;
  json["dtype"] = text_or_null(operand.dtype);
  json["odd"] = operand.odd;
  json["is"] = name_of(operand.is);
  if (operand.generator) json["generator"] = true;
  if (operand.device_argument) json["device_argument"] = true;
  if (operand.number) json["number"] = true;
  json["lineage"] = lineage_json(operand.lineage);
  return json;
}

Json operands_json(const std::vector<Operand>& operands) {
  Json json = Json::array();
  for (const Operand& operand : operands) json.push_back(operand_json(operand));
  return json;
}

Json native_json(const std::vector<NativeFrame>& frames) {
  Json json = Json::array();
  for (const NativeFrame& frame : frames) {
    json.push_back(
        {{"module", text_or_null(frame.module)}, {"symbol", text_or_null(frame.symbol)}, {"offset", frame.offset}});
  }
  return json;
}

Json cause_json(const RootCause& cause) {
  return {{"file", cause.file},
          {"line", cause.line},
          {"function", text_or_null(cause.function)},
          {"source", text_or_null(cause.source)},
          {"operand", text_or_null(cause.operand)},
          {"why", cause.why},
          {"mechanism", text_or_null(cause.mechanism)},
          {"confidence", cause.confidence ? Json(name_of(*cause.confidence)) : Json(nullptr)}};
}

Json fix_json(const std::optional<Fix>& fix) {
  if (!fix) return nullptr;
  Json patches = Json::array();
  for (const FileDiff& patch : fix->patches) patches.push_back({{"file", patch.file}, {"diff", patch.diff}});
  return {{"file", fix->file}, {"line", fix->line}, {"text", fix->text}, {"patches", std::move(patches)}};
}

Json alternative_json(const RootCause& cause) {
  Json json = cause_json(cause);
  json["fix"] = fix_json(cause.fix);
  return json;
}

Json host_access_json(const HostAccess& access) {
  return {{"writes", access.writes}, {"byte", or_null(access.byte)}, {"bytes", or_null(access.bytes)}};
}

Json expectation_json(const Expectation& expectation) {
  return {
      {"rule", expectation.rule},       {"sentence", expectation.sentence}, {"file", text_or_null(expectation.file)},
      {"line", expectation.line},       {"expected", expectation.expected}, {"found", expectation.found},
      {"tensors", expectation.tensors}, {"names", expectation.names}};
}

Json writers_json(const Overwriting& overwriting) {
  Json json = Json::array();
  for (const Writer& writer : overwriting.writers) {
    Json entry = place_json(writer.frame);
    entry["source"] = text_or_null(writer.frame.source);
    entry["when"] = writer.when;
    entry["value"] = text_or_null(writer.value);
    json.push_back(std::move(entry));
  }
  return json;
}

Json silence_json(const Silence& silence) {
  Json json = {{"by", name_of(silence.by)}};
  if (silence.by == Silence::By::suppression) {
    json["file"] = silence.file;
    json["line"] = silence.line;
    json["text"] = silence.text;
    json["reason"] = text_or_null(silence.reason);
  }
  return json;
}

Json differs_json(const std::vector<Difference>& differs) {
  Json json = Json::array();
  for (const Difference& one : differs) {
    json.push_back({{"what", one.what}, {"here", one.here}, {"there", one.there}});
  }
  return json;
}

Json ended_json(const std::vector<EndedRanks>& ended) {
  Json json = Json::array();
  for (const EndedRanks& one : ended) json.push_back({{"ranks", one.ranks}, {"what", one.what}});
  return json;
}

}  // namespace

Json finding_json(const Finding& finding, Detail detail) {
  Json json = {{"id", finding.id},
               {"kind", name_of(finding.kind)},
               {"severity", name_of(finding.severity)},
               {"raised", finding.raised},
               {"handled", finding.handled},
               {"message", text_or_null(finding.message)},
               {"op", text_or_null(finding.op)}};
  json["where"] = finding.where ? frame_json(*finding.where) : Json(nullptr);
  json["stack"] = stack_json(finding.stack);
  json["forward"] = finding.forward ? stack_json(*finding.forward) : Json(nullptr);
  if (!finding.native_stack.empty()) json["native_stack"] = native_json(finding.native_stack);
  json["operands"] = operands_json(finding.operands);
  json["root_cause"] = finding.root_cause ? cause_json(*finding.root_cause) : Json(nullptr);
  json["alternatives"] = Json::array();
  for (const RootCause& one : finding.alternatives) json["alternatives"].push_back(alternative_json(one));
  json["fix"] = fix_json(finding.fix);
  json["step"] = finding.step;
  json["phase"] = name_of(finding.phase);
  json["rank"] = or_null(finding.rank);
  json["ranks"] = finding.ranks;
  json["other_ranks"] = finding.other_ranks;
  json["ended_ranks"] = ended_json(finding.ended_ranks);
  json["differs"] = differs_json(finding.differs);
  json["pid"] = finding.pid;
  json["thread"] = finding.thread;
  json["thread_name"] = text_or_null(finding.thread_name);
  json["count"] = finding.count;
  if (finding.traffic) {
    json["bytes"] = finding.traffic->bytes;
    json["per_step"] = finding.traffic->per_step;
  }
  if (finding.expectation) json["expectation"] = expectation_json(*finding.expectation);
  if (finding.overwriting) {
    json["attribute"] = finding.overwriting->type + "." + finding.overwriting->name;
    json["writers"] = writers_json(*finding.overwriting);
  }
  if (finding.host_access) json["host_access"] = host_access_json(*finding.host_access);
  if (finding.last_moments) json["ending"] = ending_json(finding.last_moments->ending);
  if (finding.growth) json["growth"] = growth_json(*finding.growth);
  if (finding.live) json["live_memory"] = live_memory_json(*finding.live);
  if (finding.collective) json["collective"] = collective_json(*finding.collective, detail);
  json["time"] = time_or_null(finding.time_ns);
  if (finding.silence) json["silence"] = silence_json(*finding.silence);
  return json;
}

namespace {

Json thread_json(const Thread& thread) {
  Json last = Json::array();
  for (const LastOperator& op : thread.last) {
    Json entry = {{"op", text_or_null(op.op)}, {"file", text_or_null(op.at.file)}, {"line", op.at.line}};
    entry["function"] = text_or_null(op.at.function);
    entry["step"] = op.step;
    last.push_back(std::move(entry));
  }
  Json json = {{"tid", thread.tid}, {"name", text_or_null(thread.name)}, {"operators", thread.operators}};
  json["last"] = std::move(last);
  return json;
}

Json process_json(const Process& process, Detail detail) {
  Json json = {{"pid", process.pid},
               {"parent_pid", process.parent_pid},
               {"rank", or_null(process.rank)},
               {"local_rank", or_null(process.local_rank)},
               {"world_size", or_null(process.world_size)},
               {"node", or_null(process.node)},
               {"attempt", or_null(process.attempt)},
               {"run", text_or_null(process.run)},
               {"host", text_or_null(process.host)},
               {"command", text_or_null(process.command)},
               {"trace", process.file},
               {"start", time_or_null(process.start_ns)},
               {"ended", time_or_null(process.ended_ns)},
               {"first_error_ns", process.first_error_ns > 0 ? Json(process.first_error_ns) : Json(nullptr)},
               {"close", name_of(process.close)},
               {"steps", process.steps},
               {"optimizer_steps", process.optimizer_steps},
               {"operators", process.operators},
               {"lost_events", process.lost_events}};
  if (process.ended_after) json["ended_after"] = *process.ended_after;
  json["info"] = process.info;
  if (detail == Detail::page) return json;
  json["threads"] = Json::array();
  for (const Thread& thread : process.threads) json["threads"].push_back(thread_json(thread));
  add_memory_json(json, process);
  add_device_calls_json(json, process);
  add_collectives_json(json, process);
  return json;
}

// Without its processes.
Json run_json(const Run& run, Detail detail) {
  Json json = {{"id", text_or_null(run.id)},
               {"other_runs", run.other_runs},
               {"command", text_or_null(run.command)},
               {"host", text_or_null(run.hosts.empty() ? "" : run.hosts.front())},
               {"hosts", run.hosts},
               {"start", time_or_null(run.start_ns)},
               {"end", time_or_null(run.last_ns)},
               {"versions", run.versions},
               {"steps", run.steps},
               {"optimizer_steps", run.optimizer_steps}};
  json["notices"] = Json::array();
  for (const Notice& notice : run.notices) {
    json["notices"].push_back(
        {{"text", notice.text}, {"pid", notice.pid}, {"rank", or_null(notice.rank)}, {"count", notice.count}});
  }
  json["suppressions"] = Json::array();
  for (const SuppressionUse& use : run.suppressions) {
    json["suppressions"].push_back({{"file", use.file},
                                    {"line", use.line},
                                    {"text", use.text},
                                    {"reason", text_or_null(use.reason)},
                                    {"count", use.count}});
  }
  json["first_failure"] = first_failure_json(run.first_failure, detail);
  for (const EarlierFailure& earlier : run.earlier_failures) {
    json["earlier_failures"].push_back(earlier_failure_json(earlier));
  }
  return json;
}

Json damage_json(const Damage& damage) {
  return {{"file", damage.file}, {"offset", damage.offset}, {"bytes", damage.bytes}, {"reason", damage.reason}};
}

// As a part of a document that is indented by `columns` there.
std::string indented(const Json& json, std::size_t columns) {
  const std::string text = json.dump(2, ' ', false, Json::error_handler_t::replace);
  std::string result;
  for (const char c : text) {
    result += c;
    if (c == '\n') result.append(columns, ' ');
  }
  return result;
}

template <class Part, class ToJson>
void append_list(std::string& text, const std::vector<Part>& parts, const ToJson& to_json, std::size_t columns) {
  const std::string line = "\n" + std::string(columns + 2, ' ');
  text += "[";
  for (const Part& part : parts) {
    text += (&part == &parts.front() ? "" : ",") + line + indented(to_json(part), columns + 2);
  }
  text += parts.empty() ? "]" : "\n" + std::string(columns, ' ') + "]";
}

}  // namespace

std::string iso_time(std::int64_t time_ns) {
  if (time_ns <= 0) return "";
  constexpr std::int64_t kSecond = 1'000'000'000;
  const std::time_t seconds = time_ns / kSecond;
  std::tm utc{};
  if (gmtime_r(&seconds, &utc) == nullptr) return "";
  std::array<char, 32> date{};
  if (std::strftime(date.data(), date.size(), "%Y-%m-%dT%H:%M:%S", &utc) == 0) return "";
  std::array<char, 8> fraction{};
  std::snprintf(fraction.data(), fraction.size(), ".%03dZ", static_cast<int>(time_ns % kSecond / 1'000'000));
  return std::string(date.data()) + fraction.data();
}

Json report_json(const Report& report, Detail detail) {
  Json json = {{"schema", kSchema}, {"run", run_json(report.run, detail)}};
  json["run"]["processes"] = Json::array();
  for (const Process& process : report.run.processes) json["run"]["processes"].push_back(process_json(process, detail));
  json["findings"] = Json::array();
  for (const Finding& finding : report.findings) json["findings"].push_back(finding_json(finding, detail));
  json["suppressed"] = Json::array();
  for (const Finding& finding : report.suppressed) json["suppressed"].push_back(finding_json(finding, detail));
  json["damage"] = Json::array();
  for (const Damage& damage : report.damage) json["damage"].push_back(damage_json(damage));
  return json;
}

// A run of thousands of processes is written piece by piece: as one tree it takes ten times the memory of its text.
std::string render_json(const Report& report) {
  const auto one_finding = [](const Finding& finding) { return finding_json(finding); };
  std::string text = "{\n  \"schema\": " + Json(kSchema).dump() + ",\n  \"run\": ";
  std::string run = indented(run_json(report.run, Detail::all), 2);
  run.resize(run.rfind('\n'));  // without the brace that closes it
  text += run + ",\n    \"processes\": ";
  append_list(
      text, report.run.processes, [](const Process& one) { return process_json(one, Detail::all); }, 4);
  text += "\n  },\n  \"findings\": ";
  append_list(text, report.findings, one_finding, 2);
  text += ",\n  \"suppressed\": ";
  append_list(text, report.suppressed, one_finding, 2);
  text += ",\n  \"damage\": ";
  append_list(text, report.damage, damage_json, 2);
  return text + "\n}\n";
}

}  // namespace devsan::report

#include "report/findings/read_report.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "report/findings/build_endings.h"

namespace devsan::report {
namespace {

using Parsed = nlohmann::json;

// A field of another type than is wanted reads as absent.
const Parsed* field(const Parsed& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::string text_of(const Parsed& object, const char* name) {
  const Parsed* value = field(object, name);
  return value != nullptr && value->is_string() ? value->get<std::string>() : "";
}

std::int64_t number_in(const Parsed& object, const char* name, std::int64_t otherwise = 0) {
  const Parsed* value = field(object, name);
  return value != nullptr && value->is_number_integer() ? value->get<std::int64_t>() : otherwise;
}

bool flag_of(const Parsed& object, const char* name) {
  const Parsed* value = field(object, name);
  return value != nullptr && value->is_boolean() && value->get<bool>();
}

const Parsed& list_in(const Parsed& object, const char* name) {
  static const Parsed kNone = Parsed::array();
  const Parsed* value = field(object, name);
  return value != nullptr && value->is_array() ? *value : kNone;
}

std::optional<Kind> kind_named(const std::string& name) {
#define DEVSAN_FINDING_KIND(enumerator, kind_name, severity, meaning) \
  if (name == kind_name) return Kind::enumerator;
#include "trace/finding_kinds.def"
#undef DEVSAN_FINDING_KIND
  return std::nullopt;
}

Severity severity_named(const std::string& name) {
  for (const Severity severity : {Severity::error, Severity::warning}) {
    if (name == name_of(severity)) return severity;
  }
  return Severity::note;
}

Frame read_frame(const Parsed& json) {
  Frame frame;
  frame.file = text_of(json, "file");
  frame.line = frame.end_line = static_cast<int>(number_in(json, "line"));
  frame.function = text_of(json, "function");
  frame.source = text_of(json, "source");
  return frame;
}

Operand read_operand(const Parsed& json) {
  Operand operand;
  operand.arg = text_of(json, "arg");
  operand.name = text_of(json, "name");
  operand.text = text_of(json, "text");
  operand.device = text_of(json, "device");
  operand.odd = flag_of(json, "odd");
  return operand;
}

// What kinds have of their own.
void read_kind_parts(const Parsed& json, Finding& finding) {
  if (const Parsed* growth = field(json, "growth")) {
    finding.growth.emplace();
    finding.growth->device = text_of(*growth, "device");
    finding.growth->holder = text_of(*growth, "holder");
  }
  if (const Parsed* ending = field(json, "ending")) {
    finding.last_moments.emplace();
    finding.last_moments->ending.signal = signal_number(text_of(*ending, "signal"));
    if (field(*ending, "status") != nullptr) {
      finding.last_moments->ending.status = static_cast<int>(number_in(*ending, "status"));
    }
  }
  if (const Parsed* live = field(json, "live_memory")) {
    finding.live.emplace();
    finding.live->device = text_of(*live, "device");
    if (field(*live, "asked") != nullptr) finding.live->asked = static_cast<std::uint64_t>(number_in(*live, "asked"));
  }
  if (field(json, "per_step") != nullptr) {
    finding.traffic.emplace();
    finding.traffic->bytes = static_cast<std::uint64_t>(number_in(json, "bytes"));
  }
  for (const Parsed& frame : list_in(json, "native_stack")) {
    finding.native_stack.push_back({text_of(frame, "module"), text_of(frame, "symbol"), 0});
  }
}

std::optional<Finding> read_finding(const Parsed& json) {
  const std::optional<Kind> kind = kind_named(text_of(json, "kind"));
  if (!kind) return std::nullopt;  // of a later version
  Finding finding;
  finding.id = text_of(json, "id");
  finding.kind = *kind;
  finding.severity = severity_named(text_of(json, "severity"));
  finding.raised = flag_of(json, "raised");
  finding.handled = flag_of(json, "handled");
  finding.message = text_of(json, "message");
  finding.op = text_of(json, "op");
  if (const Parsed* where = field(json, "where")) finding.where = read_frame(*where);
  for (const Parsed& operand : list_in(json, "operands")) finding.operands.push_back(read_operand(operand));
  if (const Parsed* fix = field(json, "fix")) {
    finding.fix = Fix{text_of(*fix, "file"), static_cast<int>(number_in(*fix, "line")), text_of(*fix, "text")};
  }
  finding.step = static_cast<std::uint32_t>(number_in(json, "step"));
  if (field(json, "rank") != nullptr) finding.rank = static_cast<int>(number_in(json, "rank"));
  for (const Parsed& rank : list_in(json, "ranks")) {
    if (rank.is_number_integer()) finding.ranks.push_back(rank.get<int>());
  }
  finding.pid = static_cast<std::uint32_t>(number_in(json, "pid"));
  finding.thread_name = text_of(json, "thread_name");
  finding.count = static_cast<std::uint64_t>(number_in(json, "count", 1));
  read_kind_parts(json, finding);
  return finding;
}

}  // namespace

bool is_json(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  std::ifstream in(path, std::ios::binary);
  char first = 0;
  return (in >> first) && first == '{';
}

std::variant<Report, std::string> read_report(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return path.string() + " cannot be opened";
  const Parsed json = Parsed::parse(in, nullptr, false);
  if (json.is_discarded()) return path.string() + " is not JSON";
  if (!text_of(json, "schema").starts_with("devsan-report/")) return path.string() + " is not a report of devsan's";
  Report report;
  if (const Parsed* run = field(json, "run")) {
    report.run.id = text_of(*run, "id");
    report.run.command = text_of(*run, "command");
  }
  for (const Parsed& finding : list_in(json, "findings")) {
    if (auto read = read_finding(finding)) report.findings.push_back(std::move(*read));
  }
  return report;
}

}  // namespace devsan::report

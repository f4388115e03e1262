#include "report/findings/build_attributes.h"

#include <algorithm>
#include <set>

#include "report/model/frames.h"
#include "report/model/merge.h"
#include "report/model/placements.h"
#include "report/wording/attribute_text.h"
#include "rules/pattern.h"

namespace devsan::report {
namespace {

constexpr std::int64_t kMostDevices = 16;  // of a machine

// Whether one number is what a rank keeps of the other where a library divides it among ranks, as tensor parallelism
// divides attention heads and hidden sizes.
bool is_share(std::int64_t share, std::int64_t whole, std::int64_t world_size) {
  for (std::int64_t ranks = 2; ranks <= world_size; ++ranks) {
    if (world_size % ranks == 0 && share > 0 && (share == whole / ranks || share == (whole + ranks - 1) / ranks)) {
      return share != whole;
    }
  }
  return false;
}

// Whether what was overwritten may say where something belongs.
bool may_name_device(const trace::TraceFile& trace, const trace::AttributeWritePayload& write) {
  const std::optional<std::int64_t> before = rules::natural_number(trace.string(write.old_value));
  const std::optional<std::int64_t> behind = rules::natural_number(trace.string(write.new_value));
  if (!before || !behind) return true;
  const std::int64_t world_size = trace.world_size().value_or(1);
  return *before < std::max(kMostDevices, world_size) && !is_share(*behind, *before, world_size);
}

std::vector<trace::AttributeWritePayload> writes_over_devices(const trace::TraceFile& trace) {
  std::vector<trace::AttributeWritePayload> writes = trace.attribute_writes();
  std::erase_if(writes, [&](const trace::AttributeWritePayload& write) { return !may_name_device(trace, write); });
  return writes;
}

// Who was seen to write it first; where nobody was, the class's constructor.
Frame first_writer(const trace::TraceFile& trace, const trace::AttributeWritePayload& write) {
  if (write.first.file != trace::StringId::none) return frame_of(trace, write.first);
  Frame frame;
  frame.file = trace.string(write.class_file);
  frame.line = std::max(write.class_line, 0);
  frame.function = std::string(trace.string(write.type)) + ".__init__";
  return frame;
}

Overwriting overwriting_of(const trace::TraceFile& trace, const trace::AttributeWritePayload& write) {
  Overwriting overwriting;
  overwriting.type = trace.string(write.type);
  overwriting.name = trace.string(write.name);
  Writer first{first_writer(trace, write), "first", std::string(trace.string(write.old_value))};
  if (!first.frame.file.empty()) overwriting.writers.push_back(std::move(first));
  overwriting.writers.push_back({frame_of(trace, write.last), "last", std::string(trace.string(write.new_value))});
  return overwriting;
}

Finding finding_of_write(const trace::TraceFile& trace, const trace::AttributeWritePayload& write) {
  Finding finding;
  finding.kind = Kind::attribute_overwritten;
  finding.severity = default_severity(finding.kind);
  set_process(finding, trace.header().pid, trace.rank());
  finding.thread = trace.header().pid;
  finding.overwriting = overwriting_of(trace, write);
  finding.where = finding.overwriting->writers.back().frame;
  finding.stack = {*finding.where};
  finding.step = write.step;
  finding.time_ns = write.time_ns;
  tell_overwriting(finding);
  finding.id = identity_of(finding);
  return finding;
}

}  // namespace

std::vector<Finding> build_attributes(const trace::TraceFile& trace) {
  std::vector<Finding> findings;
  for (const trace::AttributeWritePayload& write : writes_over_devices(trace)) {
    findings.push_back(finding_of_write(trace, write));
  }
  return findings;
}

void link_attributes(const trace::TraceFile& trace, std::vector<Finding>& findings) {
  const std::vector<trace::AttributeWritePayload> writes = writes_over_devices(trace);
  if (writes.empty()) return;
  const std::vector<KeptTensor> modules = modules_of(trace);
  for (Finding& finding : findings) {
    if (finding.kind != Kind::wrong_placement || finding.operands.empty()) continue;
    const std::string& name = finding.operands.front().name;
    const std::size_t of = name.find(" of ");
    const std::string path = of == std::string::npos ? name : name.substr(of + 4);
    std::set<std::string> types;
    for (const KeptTensor& module : modules) {
      if (path.starts_with(module.owner + ".")) types.insert(module.type);
    }
    const auto write = std::ranges::find_if(writes, [&](const trace::AttributeWritePayload& one) {
      return types.contains(std::string(trace.string(one.type)));
    });
    if (write == writes.end()) continue;
    finding.overwriting = overwriting_of(trace, *write);
    tell_link(finding);
  }
}

}  // namespace devsan::report

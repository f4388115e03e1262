// What a reader gives of a trace, as text.
#include <sstream>

#include "sample.h"

namespace devsan::trace::testing {

namespace {

class Text {
 public:
  explicit Text(const TraceFile& trace) : trace_(trace) {}

  std::string all() {
    header();
    for (const auto& [key, value] : trace_.run_info()) out_ << "run: " << key << " = " << value << '\n';
    for (const Notice& notice : trace_.notices()) out_ << "notice: " << notice.text << " at " << notice.time_ns << '\n';
    for (const Meeting& meeting : trace_.meetings()) {
      this->meeting(meeting);
      if (const MeetingFacts* facts = trace_.facts_of(meeting)) this->facts(*facts);
    }
    for (const auto& [file, source] : trace_.source_files()) {
      out_ << "source: " << trace_.string(file) << " of " << source.size << " bytes, hash " << source.hash << ": "
           << source.text << '\n';
    }
    job();
    training();
    for (const ThreadTail& thread : trace_.threads()) this->thread(thread);
    for (const Damage& damage : trace_.damage()) {
      out_ << "damage: " << damage.offset << " +" << damage.bytes << ": " << damage.reason << '\n';
    }
    return out_.str();
  }

 private:
  void header() {
    const FileHeader& h = trace_.header();
    out_ << "format " << h.major_version << '.' << h.minor_version << ", pid " << h.pid << " of " << h.parent_pid
         << ", rank " << h.rank << " local " << h.local_rank << " of " << h.world_size << ", host " << trace_.host()
         << ", start " << h.start_time_ns << " ticks " << h.start_ticks << ", close mark "
         << static_cast<unsigned>(h.close_mark) << ", step " << h.step << ", optimizer steps " << h.optimizer_steps
         << ", lost " << h.strings_lost << '/' << h.sites_lost << '/' << h.lineage_lost << '/' << h.threads_lost << '/'
         << trace_.lost_events() << '\n';
  }

  void job() {
    for (const CollectiveGroup& group : trace_.collective_groups()) {
      out_ << "group: " << group.fixed.index << ' ' << trace_.string(group.fixed.name) << " of "
           << trace_.string(group.fixed.backend) << ", rank " << group.fixed.rank << " of " << group.fixed.size << ':';
      for (const std::int32_t rank : group.ranks) out_ << ' ' << rank;
      out_ << '\n';
    }
    for (const Failure& failure : trace_.failures()) {
      out_ << "failure: " << trace_.string(failure.fixed.type) << ": " << trace_.string(failure.fixed.message) << " at "
           << failure.fixed.time_ns << " step " << failure.fixed.step << '\n';
      frames("frame", failure.frames);
    }
    for (const WaitingStack& stack : trace_.waiting_stacks()) {
      out_ << "waiting: in " << stack.fixed.collective << " at " << stack.fixed.time_ns << '\n';
      frames("frame", stack.frames);
    }
  }

  void training() {
    for (const StepTime& step : trace_.step_series().steps) {
      out_ << "step: " << step.step << " at " << step.begin_ns << ": " << step.forward_ns << ' ' << step.backward_ns
           << ' ' << step.between_ns << ' ' << step.optimizer_ns << ' ' << step.rest_ns << '\n';
    }
    for (const DataWait& wait : trace_.data_waits().steps) {
      out_ << "data: " << wait.step << " of " << wait.step_ns << ": " << wait.forward_ns << ' ' << wait.between_ns
           << ' ' << wait.rest_ns << '\n';
    }
    for (const PeakMemory& peak : trace_.peak_memory()) this->peak(peak);
    for (const CollectiveEntry& wait : trace_.long_waits()) {
      const CollectiveFacts& facts = wait.facts;
      out_ << "long wait: " << trace_.operator_name(facts.op) << ' ' << facts.sequence << " of group " << facts.group
           << ", " << facts.bytes << '+' << facts.other_bytes << " bytes of " << trace_.string(facts.dtype) << " on "
           << trace_.device_name(facts.device) << " step " << facts.step << " phase "
           << static_cast<unsigned>(facts.phase) << " tid " << facts.tid << " peer " << facts.peer << " state "
           << static_cast<unsigned>(wait.state) << ", " << facts.entered_ns << ' ' << wait.wait_ns << ' '
           << wait.finished_ns << " at";
      site(facts.site);
    }
  }

  void peak(const PeakMemory& peak) {
    out_ << "peak: " << peak.peak << " on " << trace_.device_name(peak.device) << " in step " << peak.peak_step
         << (peak.in_backward ? " in backward" : "") << ", look " << static_cast<unsigned>(peak.moment) << " in step "
         << peak.step << " at " << peak.time_ns << ": " << peak.listed << " of " << peak.allocated << " of "
         << peak.reserved << '\n';
    for (std::size_t kind = 0; kind < peak.kinds.size(); ++kind) {
      if (peak.kinds[kind].count == 0) continue;
      out_ << "  kind " << kind << ": " << peak.kinds[kind].count << " of " << peak.kinds[kind].bytes << '\n';
    }
    for (const LiveMemoryRow& row : peak.rows) {
      out_ << "  row " << static_cast<unsigned>(row.kind) << ": " << row.count << " of " << row.bytes << " by "
           << trace_.operator_name(row.op) << " in '" << trace_.string(row.module) << "' at";
      site(row.site);
    }
  }

  void position(const Position& p) {
    out_ << trace_.string(p.file) << ':' << p.line << '-' << p.end_line << ':' << p.column << '-' << p.end_column
         << " in " << trace_.string(p.function) << " `" << trace_.source_line(p.file, p.line) << '`';
  }

  void site(SiteId id) {
    const std::optional<Site> site = trace_.site(id);
    if (!site) {
      out_ << " site none\n";
      return;
    }
    out_ << " site ";
    position(site->user);
    out_ << " <- ";
    position(site->innermost);
    out_ << '\n';
  }

  void frames(const char* what, const std::vector<FrameRecord>& frames) {
    for (const FrameRecord& frame : frames) {
      out_ << "  " << what << ' ';
      position(frame.position);
      out_ << " flags " << frame.flags << '\n';
    }
  }

  void meeting(const Meeting& meeting) {
    const MeetingPayload& f = meeting.fixed;
    out_ << "meeting: " << trace_.operator_name(f.op) << " '" << trace_.string(f.message) << "' repeats " << f.repeats
         << " last step " << f.last_step << " flags " << f.flags << " time " << f.time_ns << " phase "
         << static_cast<unsigned>(f.phase) << " step " << f.step << " tid " << f.tid << ' '
         << trace_.string(f.thread_name) << '\n';
    out_ << "  at";
    site(f.site);
    for (const OperandRecord& operand : meeting.operands) this->operand(operand);
    frames("frame", meeting.frames);
    frames("forward", meeting.forward_frames);
    for (const EvidenceRecord& evidence : meeting.evidence) this->evidence(evidence);
    for (const NativeFrame& frame : meeting.native_frames) {
      out_ << "  native " << trace_.string(frame.module) << ' ' << trace_.string(frame.symbol) << '+' << frame.offset
           << '\n';
    }
  }

  void facts(const MeetingFacts& facts) {
    out_ << "  facts: flags " << facts.fixed.flags << " in " << facts.fixed.microseconds << " us\n";
    for (const ObjectFact& o : facts.objects) {
      out_ << "  object " << static_cast<unsigned>(o.kind) << ' ' << trace_.string(o.type) << " '"
           << trace_.string(o.text) << "' " << o.number << " flags " << static_cast<unsigned>(o.flags) << " on "
           << trace_.device_name(o.device) << " operand " << static_cast<int>(o.operand) << " storage " << o.storage
           << " lineage " << trace_.lineage_chain(o.lineage).size() << " code " << trace_.string(o.file) << ':'
           << o.line << " in " << trace_.string(o.function) << '\n';
    }
    for (const LinkFact& l : facts.links) {
      out_ << "  link " << l.from << " -> " << l.to << " kind " << static_cast<unsigned>(l.kind) << ' '
           << trace_.string(l.name) << ' ' << l.index << " of " << facts.objects[l.from].line
           << facts.objects[l.to].line << '\n';
    }
    for (const VariableFact& v : facts.variables) {
      out_ << "  variable " << v.frame << ' ' << trace_.string(v.name) << " kind " << static_cast<unsigned>(v.kind)
           << " = " << v.object << " of line " << facts.objects[v.object].line << '\n';
    }
    for (const CopyFact& c : facts.copies) {
      out_ << "  copy " << static_cast<unsigned>(c.kind) << " of " << c.storage << " to "
           << trace_.device_name(c.device) << " calls " << static_cast<std::uint32_t>(c.calls);
      site(c.site);
    }
  }

  void operand(const OperandRecord& o) {
    out_ << "  operand " << trace_.string(o.argument) << " = " << trace_.string(o.name) << ": "
         << trace_.string(o.dtype) << " on " << trace_.device_name(o.device) << " kind "
         << static_cast<unsigned>(o.name_kind) << " flags " << static_cast<unsigned>(o.flags) << " of "
         << o.storage_bytes << " bytes, " << static_cast<unsigned>(o.dims) << " dims";
    for (const std::int64_t size : o.sizes) out_ << ' ' << size;
    out_ << '\n';
    for (const LineageNode& node : trace_.lineage_chain(o.lineage)) {
      out_ << "    how " << static_cast<unsigned>(node.how) << " by " << trace_.operator_name(node.op) << " on "
           << trace_.device_name(node.device) << " depth " << static_cast<unsigned>(node.depth);
      site(node.site);
    }
  }

  void evidence(const EvidenceRecord& e) {
    out_ << "  evidence " << static_cast<unsigned>(e.kind) << " of operand " << static_cast<unsigned>(e.operand) << ": "
         << trace_.string(e.text) << " at ";
    position(e.at);
    out_ << '\n';
  }

  void thread(const ThreadTail& thread) {
    out_ << "thread " << thread.tid << ' ' << thread.name << ": " << thread.operators << " operators\n";
    for (const RingEntry& entry : thread.last) {
      out_ << "  " << trace_.operator_name(entry.op) << " on " << trace_.device_name(entry.device) << " step "
           << entry.step << " site " << static_cast<std::uint32_t>(entry.site) << '\n';
    }
  }

  const TraceFile& trace_;
  std::ostringstream out_;
};

}  // namespace

std::string describe(const TraceFile& trace) {
  return Text(trace).all();
}

}  // namespace devsan::trace::testing

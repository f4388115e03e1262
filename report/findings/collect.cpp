#include "report/findings/collect.h"

#include <algorithm>
#include <functional>
#include <set>
#include <system_error>

#include "report/causes/causes.h"
#include "report/findings/apart.h"
#include "report/findings/attempts.h"
#include "report/findings/build_attributes.h"
#include "report/findings/build_collectives.h"
#include "report/findings/build_placements.h"
#include "report/findings/build_run.h"
#include "report/findings/runs.h"

namespace devsan::report {
namespace {

namespace fs = std::filesystem;

// In the order of ranks, and of pids within one: "rank2.…" before "rank10.…".
bool earlier_name(const fs::path& left, const fs::path& right) {
  const std::string a = left.filename().string();
  const std::string b = right.filename().string();
  if (a.size() != b.size()) return a.size() < b.size();
  return a < b;
}

struct Entries {
  std::vector<fs::path> traces;
  std::vector<fs::path> directories;
};

Entries entries_of(const fs::path& directory, std::error_code& error) {
  Entries found;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (entry->path().extension() == ".devsan") {
      found.traces.push_back(entry->path());
    } else if (entry->is_directory(ignored)) {
      found.directories.push_back(entry->path());
    }
  }
  return found;
}

// Those in the directory. Where it has none, as `devsan-out` has none, those in the directories of runs in it.
std::vector<fs::path> traces_in(const fs::path& directory, std::vector<std::string>& complaints) {
  std::error_code error;
  Entries found = entries_of(directory, error);
  if (error) {
    complaints.push_back(directory.string() + ": " + error.message());
    return {};
  }
  if (!found.traces.empty()) return found.traces;
  for (const fs::path& below : found.directories) {
    const std::vector<fs::path> traces = entries_of(below, error).traces;  // one that cannot be read may be no run
    found.traces.insert(found.traces.end(), traces.begin(), traces.end());
  }
  if (found.traces.empty()) {
    complaints.push_back(directory.string() + ": no trace in this directory (rank<R>.<pid>.devsan)");
  }
  return found.traces;
}

void list_directory(const fs::path& directory, RunsRead runs, TraceListing& listing) {
  std::vector<fs::path> found = traces_in(directory, listing.complaints);
  if (runs == RunsRead::newest) {
    RunTraces newest = newest_run(found);
    found = std::move(newest.files);
    listing.other_runs += newest.others;
  }
  std::ranges::sort(found, earlier_name);
  listing.files.insert(listing.files.end(), found.begin(), found.end());
}

}  // namespace

TraceListing list_traces(std::span<const fs::path> paths, RunsRead runs) {
  TraceListing listing;
  for (const fs::path& path : paths) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (fs::is_directory(status)) {
      list_directory(path, runs, listing);
    } else if (fs::exists(status)) {
      listing.files.push_back(path);
    } else {
      listing.complaints.push_back(path.string() + ": " +
                                   (error ? error.message() : std::string("no such file or directory")));
    }
  }
  if (paths.size() < 2) return listing;
  // A file named twice, or beside its directory, counts once.
  std::set<fs::path> seen;
  std::erase_if(listing.files, [&](const fs::path& file) {
    std::error_code error;
    const fs::path canonical = fs::weakly_canonical(file, error);
    return !seen.insert(error ? file : canonical).second;
  });
  return listing;
}

namespace {

constexpr std::size_t kBriefThreads = 4;
constexpr std::size_t kBriefOperators = 4;
constexpr std::size_t kBriefPoints = 8;
constexpr std::size_t kBriefPlaces = 4;

void note_error(const Finding& finding, Process& process) {
  if (finding.severity != Severity::error || finding.time_ns <= 0) return;
  const bool first = process.first_error_ns == 0 || finding.time_ns < process.first_error_ns;
  if (first) process.first_error_ns = finding.time_ns;
}

// Evenly spaced points, and the last one.
void shorten(MemoryCurve& curve) {
  if (curve.points.size() <= kBriefPoints) return;
  std::vector<MemoryPoint> kept;
  for (std::size_t i = 0; i + 1 < kBriefPoints; ++i) {
    kept.push_back(curve.points[i * curve.points.size() / (kBriefPoints - 1)]);
  }
  kept.push_back(curve.points.back());
  curve.points = std::move(kept);
}

// Of a process that ended by itself, what a report of thousands can show. The others may become findings, which tell
// of collectives on their own.
void shorten(Process& process) {
  if (process.last_collectives.size() > kBriefOperators) process.last_collectives.resize(kBriefOperators);
  process.last_collectives.shrink_to_fit();
  if (process.close == trace::CloseMark::open) return;
  std::ranges::stable_sort(process.threads, std::greater<>(), &Thread::operators);
  if (process.threads.size() > kBriefThreads) process.threads.resize(kBriefThreads);
  for (Thread& thread : process.threads) {
    if (thread.last.size() > kBriefOperators) thread.last.resize(kBriefOperators);
    thread.last.shrink_to_fit();
  }
  for (MemoryCurve& curve : process.memory) shorten(curve);
  for (PeakMemory& peak : process.peak_memory) {
    if (peak.by_place.size() > kBriefPlaces) peak.by_place.resize(kBriefPlaces);
    peak.by_place.shrink_to_fit();
  }
  process.last_device_calls.clear();
}

}  // namespace

Collector::Collector(const std::vector<SuppressionUse>* instead, FactsOfRun* facts) : facts_(facts) {
  if (instead != nullptr) suppressor_.use_instead(*instead);
}

void Collector::add(ReadTrace read) {
  const trace::TraceFile& trace = read.trace;
  for (const trace::Damage& damage : trace.damage()) add_damage(trace.path(), damage);
  report_.run.processes.push_back(std::move(read.process));
  Process& process = report_.run.processes.back();
  add_notices(trace, process);
  child_ends_.add(trace);
  collectives_.add(trace, process);
  rank_lists_.share(process.last_collectives);
  suppressor_.begin_trace(trace);
  if (facts_ != nullptr) facts_->add(trace, read.meetings);
  add_sources(trace, sources_);
  take(std::move(read.meetings), &process);
  rules_.begin_trace(trace);
  std::vector<Finding> placements = rules_.judge(trace);
  link_attributes(trace, placements);
  take(std::move(placements), &process);
  take(build_attributes(trace), &process);
  rules_.judge_traffic(trace, read.traffic);
  take(std::move(read.traffic), &process);
  take(std::move(read.growth), &process);
  if (trace.is_used_up()) {
    add_damage(trace.path(), {0, 0, "its records name more text than a report has room for: some is left out"});
  }
  if (brief_) shorten(process);
}

void Collector::use_rules(const rules::RulesFile& rules) {
  rules_.use_instead(rules.rules, {rules.off.begin(), rules.off.end()});
}

void Collector::take(std::vector<Finding> findings, Process* process) {
  for (Finding& finding : findings) {
    report_.run.last_ns = std::max(report_.run.last_ns, finding.time_ns);
    suppressor_.judge(finding);
    if (process != nullptr && !finding.silence) note_error(finding, *process);
    (finding.silence ? suppressed_ : merger_).add(std::move(finding));
  }
}

void Collector::add_notices(const trace::TraceFile& trace, const Process& process) {
  std::vector<Notice>& notices = report_.run.notices;
  for (const trace::Notice& notice : trace.notices()) {
    report_.run.last_ns = std::max(report_.run.last_ns, notice.time_ns);
    const auto same = std::ranges::find(notices, notice.text, &Notice::text);
    if (same != notices.end()) {
      ++same->count;
    } else {
      notices.push_back({notice.text, process.pid, process.rank, 1});
    }
  }
}

void Collector::add_damage(const fs::path& file, const trace::Damage& damage) {
  report_.damage.push_back({file.string(), damage.offset, damage.bytes, damage.reason});
}

Report Collector::take() {
  child_ends_.tell(report_.run.processes);
  suppressor_.begin_run();
  Run& run = report_.run;
  run.clocks = collectives_.clocks();
  place_processes(run.processes, run.clocks);
  run.earlier_failures = tell_ended_after(run.processes, collectives_, run.clocks);
  take(build_endings(run.processes), nullptr);
  const std::map<int, RankTrouble> troubles = troubles_of(run.processes, collectives_, run.clocks);
  const Stories stories(run.processes, collectives_, run.clocks, troubles);
  take(build_collectives(stories), nullptr);
  report_.findings = merger_.take();
  run.first_failure = first_failure_of(stories, report_.findings);
  report_.suppressed = suppressed_.take();
  set_apart(report_, collectives_, troubles);
  slice::Codebase codebase(sources_);
  for (Finding& finding : report_.findings) add_causes(finding, codebase);
  for (Finding& finding : report_.suppressed) add_causes(finding, codebase);
  run.suppressions = suppressor_.take();
  for (Notice& notice : rules_.unused()) run.notices.push_back(std::move(notice));
  summarize_processes(run);
  return std::exchange(report_, {});
}

Reading read_traces(std::span<const fs::path> paths, const std::vector<SuppressionUse>* instead, RunsRead runs,
                    FactsOfRun* facts, const ReadingAids& aids) {
  TraceListing listing = list_traces(paths, runs);
  Collector collector(instead, facts);
  if (aids.rules != nullptr) collector.use_rules(*aids.rules);
  collector.expect(listing.files.size());
  TraceReader reader(listing.files);
  for (const fs::path& file : listing.files) {
    std::optional<ReadResult> read = reader.next();
    if (const auto* damage = std::get_if<trace::Damage>(&*read)) {
      collector.add_damage(file, *damage);
    } else {
      ReadTrace& one = std::get<ReadTrace>(*read);
      if (aids.visit) aids.visit(one.trace);
      collector.add(std::move(one));
    }
  }
  Reading reading;
  reading.complaints = std::move(listing.complaints);
  reading.readable = collector.traces();
  reading.report = collector.take();
  reading.sources = collector.take_sources();
  reading.report.run.other_runs = listing.other_runs;
  if (runs == RunsRead::all && count_runs(listing.files) > 1) reading.report.run.id.clear();
  return reading;
}

}  // namespace devsan::report

#include "report/findings/collect.h"

#include <algorithm>
#include <set>
#include <system_error>

#include "report/causes/causes.h"
#include "report/findings/build_attributes.h"
#include "report/findings/build_collectives.h"
#include "report/findings/build_findings.h"
#include "report/findings/build_growth.h"
#include "report/findings/build_placements.h"
#include "report/findings/build_run.h"
#include "report/findings/build_traffic.h"
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

// What `paths` lead to.
struct Listing {
  std::vector<fs::path> files;
  std::size_t other_runs = 0;
  std::vector<std::string> complaints;
};

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

void list_directory(const fs::path& directory, RunsRead runs, Listing& listing) {
  std::vector<fs::path> found = traces_in(directory, listing.complaints);
  if (runs == RunsRead::newest) {
    RunTraces newest = newest_run(found);
    found = std::move(newest.files);
    listing.other_runs += newest.others;
  }
  std::ranges::sort(found, earlier_name);
  listing.files.insert(listing.files.end(), found.begin(), found.end());
}

Listing list_files(std::span<const fs::path> paths, RunsRead runs) {
  Listing listing;
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
  // A file named twice, or beside its directory, counts once.
  std::set<fs::path> seen;
  std::erase_if(listing.files, [&](const fs::path& file) {
    std::error_code error;
    const fs::path canonical = fs::weakly_canonical(file, error);
    return !seen.insert(error ? file : canonical).second;
  });
  return listing;
}

}  // namespace

Collector::Collector(const std::vector<SuppressionUse>* instead, FactsOfRun* facts) : facts_(facts) {
  if (instead != nullptr) suppressor_.use_instead(*instead);
}

void Collector::add(const trace::TraceFile& trace) {
  for (const trace::Damage& damage : trace.damage()) add_damage(trace.path(), damage);
  report_.run.processes.push_back(process_of(trace));
  add_notices(trace, report_.run.processes.back());
  child_ends_.add(trace);
  collectives_.add(trace, report_.run.processes.back());
  suppressor_.begin_trace(trace);
  std::vector<Finding> findings = build_findings(trace);
  if (facts_ != nullptr) facts_->add(trace, findings);
  add_sources(trace, sources_);
  take(std::move(findings));
  rules_.begin_trace(trace);
  std::vector<Finding> placements = rules_.judge(trace);
  link_attributes(trace, placements);
  take(std::move(placements));
  take(build_attributes(trace));
  std::vector<Finding> traffic = build_traffic(trace);
  rules_.judge_traffic(trace, traffic);
  take(std::move(traffic));
  take(build_growth(trace, report_.run.processes.back()));
}

void Collector::use_rules(const rules::RulesFile& rules) {
  rules_.use_instead(rules.rules, {rules.off.begin(), rules.off.end()});
}

void Collector::take(std::vector<Finding> findings) {
  for (Finding& finding : findings) {
    report_.run.last_ns = std::max(report_.run.last_ns, finding.time_ns);
    suppressor_.judge(finding);
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
  take(build_endings(report_.run.processes));
  take(build_collectives(report_.run.processes, collectives_));
  report_.findings = merger_.take();
  report_.run.first_failure = first_failure_of(report_.run.processes, collectives_, report_.findings);
  report_.suppressed = suppressed_.take();
  slice::Codebase codebase(sources_);
  for (Finding& finding : report_.findings) add_causes(finding, codebase);
  for (Finding& finding : report_.suppressed) add_causes(finding, codebase);
  report_.run.suppressions = suppressor_.take();
  for (Notice& notice : rules_.unused()) report_.run.notices.push_back(std::move(notice));
  summarize_processes(report_.run);
  return std::exchange(report_, {});
}

Reading read_traces(std::span<const fs::path> paths, const std::vector<SuppressionUse>* instead, RunsRead runs,
                    FactsOfRun* facts, const ReadingAids& aids) {
  Listing listing = list_files(paths, runs);
  Collector collector(instead, facts);
  if (aids.rules != nullptr) collector.use_rules(*aids.rules);
  for (const fs::path& file : listing.files) {
    const auto opened = trace::TraceFile::open(file);
    if (const auto* damage = std::get_if<trace::Damage>(&opened)) {
      collector.add_damage(file, *damage);
    } else {
      const auto& trace = std::get<trace::TraceFile>(opened);
      if (aids.visit) aids.visit(trace);
      collector.add(trace);
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

// What a process made at lines of its program: where another rank's history is held against it.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "report/model/finding.h"
#include "trace/reader.h"

namespace devsan::report {

// How many entries of the section there are: a damaged header may count more. `counted` is what it says.
std::uint32_t entries_of(const trace::TraceFile& trace, trace::SectionKind kind, std::uint32_t counted);

class LinesOfTrace {
 public:
  // Of the lines of these steps alone.
  LinesOfTrace(const trace::TraceFile& trace, const std::vector<const LineageStep*>& steps);

  // Whether any operator was called there.
  bool ran(const Frame& at) const { return ran_.contains(place_of(at)); }
  // The devices that the operator's results were on there.
  std::set<std::string> devices(const Frame& at, const std::string& op) const;

 private:
  using Place = std::pair<std::string, int>;
  static Place place_of(const Frame& frame) { return {frame.file, frame.line}; }

  std::set<Place> ran_;
  std::map<std::pair<Place, std::string>, std::set<std::string>> devices_;
};

}  // namespace devsan::report

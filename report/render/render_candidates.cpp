#include "report/render/render_candidates.h"

#include <nlohmann/json.hpp>

#include "report/ranking/candidate.h"
#include "report/render/render_json_parts.h"
#include "report/slice/code.h"

namespace devsan::report {
namespace {

Json candidate_json(const ranking::Candidate& candidate) {
  Json features = Json::object();
  for (std::size_t k = 0; k < ranking::kFeatures; ++k) {
    const auto feature = static_cast<ranking::Feature>(k);
    if (candidate[feature] != 0) features[std::string(ranking::name_of(feature))] = candidate[feature];
  }
  return {{"file", candidate.file->path()}, {"line", candidate.line}, {"features", std::move(features)}};
}

Json finding_json(const Finding& finding, slice::Codebase& codebase) {
  const slice::Code code(codebase, finding);
  const std::vector<slice::Place> places = slice::slice_of(finding, code);
  Json candidates = Json::array();
  for (const ranking::Candidate& one : ranking::candidates_of(finding, code, places)) {
    candidates.push_back(candidate_json(one));
  }
  return {{"id", finding.id},
          {"pid", finding.pid},
          {"file", finding.where ? finding.where->file : ""},
          {"line", finding.where ? finding.where->line : 0},
          {"candidates", std::move(candidates)}};
}

}  // namespace

std::string render_candidates(const Report& report, const Sources& sources) {
  slice::Codebase codebase(sources);
  Json json = {{"schema", "devsan-candidates/1"}, {"findings", Json::array()}};
  for (const Finding& finding : report.findings) {
    if (finding.kind == Kind::device_mismatch && finding.raised) {
      json["findings"].push_back(finding_json(finding, codebase));
    }
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace devsan::report

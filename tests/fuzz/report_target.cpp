// A kept report, as `devsan diff` reads it: compared with itself and with a report that has no findings.
#include <nlohmann/json.hpp>

#include "report/findings/read_report.h"
#include "report/render/render_diff.h"
#include "target.h"

namespace {

using namespace devsan;

void show(const report::Report& before, const report::Report& after) {
  std::vector<const report::Finding*> old_ones;
  std::vector<const report::Finding*> new_ones;
  for (const report::Finding& finding : before.findings) old_ones.push_back(&finding);
  for (const report::Finding& finding : after.findings) new_ones.push_back(&finding);
  const report::Comparison comparison = compare(old_ones, new_ones);
  fuzz::require(nlohmann::json::accept(render_diff_json(comparison, before.run, after.run)), "a comparison is JSON");
  fuzz::require(!render_diff(comparison, {false, 80}).empty(), "there is a text of a comparison");
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::filesystem::path file = fuzz::write_scratch("report.json", {data, size});
  if (!report::is_json(file)) return 0;
  auto read = report::read_report(file);
  if (const auto* why = std::get_if<std::string>(&read)) {
    fuzz::require(!why->empty(), "a report that is not read has a reason");
    return 0;
  }
  const auto& report = std::get<report::Report>(read);
  show(report, report);
  show(report, {});
  show({}, report);
  return 0;
}

#include "doctor/render_json.h"

namespace devsan::doctor {
namespace {

Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json line_json(const Line& line) {
  const CheckInfo& info = info_of(line.check);
  return {{"check", info.name},
          {"group", info_of(info.group).name},
          {"level", name_of(line.level)},
          {"found", line.found},
          {"means", text_or_null(line.means)},
          {"cure", text_or_null(line.cure)},
          {"source", text_or_null(line.source)},
          {"steps", line.steps}};
}

Json gpu_json(const Gpu& gpu) {
  return {
      {"name", gpu.name}, {"uuid", text_or_null(gpu.uuid)}, {"memory", gpu.memory}, {"capability", gpu.capability()}};
}

Json machine_json(const Facts& facts) {
  Json gpus = Json::array();
  for (const Gpu& gpu : facts.driver.visible) gpus.push_back(gpu_json(gpu));
  return {{"kernel", facts.machine.kernel},
          {"wsl2", facts.machine.wsl2},
          {"container", facts.machine.container},
          {"memory", facts.machine.memory_total},
          {"memory_left", facts.machine.memory_left()},
          {"driver", text_or_null(facts.driver.version)},
          {"cuda", facts.driver.cuda_version},
          {"gpus", gpus}};
}

}  // namespace

std::string render_json(const Facts& facts, const Diagnosis& diagnosis, const std::string& version) {
  Json lines = Json::array();
  for (const Line& line : diagnosis.lines()) lines.push_back(line_json(line));
  const Json json = {{"schema", "devsan-doctor/1"},
                     {"devsan", version},
                     {"summary",
                      {{"ok", diagnosis.count(Level::ok)},
                       {"warnings", diagnosis.count(Level::warning)},
                       {"errors", diagnosis.count(Level::error)}}},
                     {"machine", machine_json(facts)},
                     {"python",
                      {{"path", text_or_null(facts.python.path)},
                       {"version", text_or_null(facts.python.version)},
                       {"torch", facts.torch ? Json(facts.torch->version) : Json(nullptr)},
                       {"torch_cuda", facts.torch ? text_or_null(facts.torch->cuda) : Json(nullptr)}}},
                     {"checks", lines}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace devsan::doctor

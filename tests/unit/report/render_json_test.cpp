#include "report/render/render_json.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "samples.h"

namespace devsan::report {
namespace {

nlohmann::json rendered(const Report& report) {
  return nlohmann::json::parse(render_json(report));
}

TEST_CASE("The report carries its schema, the run, the findings and the damage") {
  Report report = samples::report_of({samples::offloaded_gradient()});
  report.damage.push_back({"rank1.5.devsan", 4096, 100, "A record's checksum does not fit."});
  const auto json = rendered(report);
  CHECK(json["schema"] == "devsan-report/1");
  CHECK(json["run"]["command"] == "python train.py");
  CHECK(json["run"]["host"] == "node-1");
  CHECK(json["run"]["steps"] == 18);
  CHECK(json["run"]["processes"][0]["close"] == "exited");
  CHECK(json["findings"].size() == 1);
  CHECK(json["damage"][0]["bytes"] == 100);
  CHECK(json["damage"][0]["file"] == "rank1.5.devsan");
}

TEST_CASE("A finding carries everything of its contract") {
  const auto json = rendered(samples::report_of({samples::offloaded_gradient()}))["findings"][0];
  CHECK(json["kind"] == "device-mismatch");
  CHECK(json["severity"] == "error");
  CHECK(json["raised"] == true);
  CHECK(json["handled"] == false);
  CHECK(json["op"] == "aten::mul_.Tensor");
  CHECK(json["where"]["line"] == 2117);
  CHECK(json["where"]["column"] == 8);
  CHECK(json["stack"].size() == 5);
  CHECK(json["stack"][1]["column"].is_null());
  CHECK(json["forward"].is_null());
  CHECK(json["operands"][0]["odd"] == false);
  CHECK(json["operands"][0]["shape"] == nlohmann::json({2632}));
  CHECK(json["operands"][1]["odd"] == true);
  CHECK(json["operands"][1]["shape"] == nlohmann::json::array());
  CHECK(json["operands"][1]["is"] == "temporary");
  CHECK(json["operands"][1]["lineage"].front()["op"] == "aten::mul.Tensor");
  CHECK(json["operands"][1]["lineage"].back()["how"] == "created");
  CHECK(json["operands"][1]["lineage"].back()["device"] == "cuda:0");
  CHECK(json["root_cause"]["line"] == 2029);
  CHECK(json["fix"]["line"] == 2029);
  CHECK(json["step"] == 17);
  CHECK(json["phase"] == "optimizer");
  CHECK(json["rank"] == 0);
  CHECK(json["ranks"] == nlohmann::json({0}));
  CHECK(json["thread"] == 4242);
  CHECK(json["count"] == 1);
  CHECK_FALSE(json.contains("native_stack"));
}

TEST_CASE("A step of a history has the calls that led to it where they are known") {
  Finding finding = samples::plain_attribute();
  finding.operands[1].lineage.back().calls = {*finding.where};
  const auto steps = rendered(samples::report_of({finding}))["findings"][0]["operands"][1]["lineage"];
  CHECK_FALSE(steps[0].contains("calls"));
  REQUIRE(steps[1]["calls"].size() == 1);
  CHECK(steps[1]["calls"][0]["line"] == 23);
  CHECK(steps[1]["calls"][0]["function"] == "Attention.forward");
}

TEST_CASE("A cause and its alternatives have a mechanism, and how sure they are") {
  const auto json = rendered(samples::report_of({samples::offloaded_gradient()}))["findings"][0];
  CHECK(json["root_cause"]["mechanism"] == "computed_elsewhere");
  CHECK(json["root_cause"]["confidence"] == "possible");
  REQUIRE(json["alternatives"].size() == 2);
  CHECK(json["alternatives"][0]["line"] == 2117);
  CHECK(json["alternatives"][1]["mechanism"] == "made_without_device");
  CHECK(json["alternatives"][1]["confidence"] == "possible");
  CHECK(json["alternatives"][1]["function"].is_null());
  const auto likely = rendered(samples::report_of({samples::plain_attribute()}))["findings"][0];
  CHECK(likely["root_cause"]["confidence"] == "likely");
  CHECK(likely["alternatives"].empty());
}

TEST_CASE("An alternative has the change at its own line") {
  Finding finding = samples::offloaded_gradient();
  finding.alternatives[0].fix = Fix{"/p.py", 3, "Move it", {{"/p.py", "--- a diff"}}};
  const auto json = rendered(samples::report_of({finding}))["findings"][0];
  CHECK(json["alternatives"][0]["fix"]["line"] == 3);
  CHECK(json["alternatives"][0]["fix"]["patches"][0]["diff"] == "--- a diff");
  CHECK(json["alternatives"][1]["fix"].is_null());
  CHECK_FALSE(json["root_cause"].contains("fix"));
}

TEST_CASE("A cause that the run itself shows has no mechanism and no confidence") {
  Finding finding = samples::plain_attribute();
  finding.root_cause->mechanism.clear();
  finding.root_cause->confidence.reset();
  const auto cause = rendered(samples::report_of({finding}))["findings"][0]["root_cause"];
  CHECK(cause["mechanism"].is_null());
  CHECK(cause["confidence"].is_null());
}

TEST_CASE("What the host did to memory of a device is there where it did something") {
  Finding finding = samples::allowed_scalar();
  CHECK_FALSE(rendered(samples::report_of({finding}))["findings"][0].contains("host_access"));
  finding.host_access = HostAccess{true, 16, std::nullopt};
  const auto access = rendered(samples::report_of({finding}))["findings"][0]["host_access"];
  CHECK(access["writes"] == true);
  CHECK(access["byte"] == 16);
  CHECK(access["bytes"].is_null());
}

TEST_CASE("What is not known is null") {
  Finding finding = samples::allowed_scalar();
  finding.operands[0].name.clear();
  finding.operands[1].shape.reset();
  finding.operands[1].dtype.clear();
  finding.where.reset();
  finding.native_stack = {{"/usr/lib/libapp.so", "", 64}};
  const auto json = rendered(samples::report_of({finding}))["findings"][0];
  CHECK(json["message"].is_null());
  CHECK(json["where"].is_null());
  CHECK(json["rank"].is_null());
  CHECK(json["root_cause"].is_null());
  CHECK(json["fix"].is_null());
  CHECK(json["operands"][0]["name"].is_null());
  CHECK(json["operands"][1]["shape"].is_null());
  CHECK(json["operands"][1]["dtype"].is_null());
  CHECK(json["native_stack"][0]["symbol"].is_null());
  CHECK(json["native_stack"][0]["offset"] == 64);
}

TEST_CASE("Text that is no UTF-8 still gives JSON") {
  Finding finding = samples::plain_attribute();
  finding.message = "bad \xff\xfe bytes";
  CHECK(rendered(samples::report_of({finding}))["findings"][0]["message"] == "bad \uFFFD\uFFFD bytes");
}

TEST_CASE("Times are in UTC, to the millisecond") {
  CHECK(iso_time(1'700'000'000'500'000'000) == "2023-11-14T22:13:20.500Z");
  CHECK(iso_time(0).empty());
}

}  // namespace
}  // namespace devsan::report

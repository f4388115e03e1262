#include "doctor/bugs/known_bugs.h"

#include <set>

#include "sample_facts.h"

using namespace devsan::doctor;

namespace {

constexpr char kOffload[] = R"({"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}}})";
constexpr char kPlain[] = R"({"zero_optimization": {"stage": 1}})";

Facts with_package(const std::string& name, const std::string& version, Facts facts = sample_facts()) {
  facts.packages.add(name, {version, ""});
  return facts;
}

}  // namespace

TEST_CASE("the file of known bugs is whole") {
  const std::vector<KnownBug>& bugs = known_bugs();
  CHECK(bugs.size() >= 60);
  std::set<std::string> libraries;
  std::set<std::string> seen;
  for (const KnownBug& bug : bugs) {
    INFO(bug.library << " " << bug.affected << " " << bug.source);
    libraries.insert(bug.library);
    CHECK(seen.insert(bug.library + bug.affected + bug.source).second);
    CHECK(bug.source.starts_with("https://"));
    CHECK(bug.symptom.ends_with('.'));
    CHECK(bug.cure.ends_with('.'));
    CHECK((!bug.enough || !bug.when.empty()));
  }
  for (const char* library : {"deepspeed", "accelerate", "transformers", "peft", "torchmetrics"})
    CHECK(libraries.contains(library));
}

TEST_CASE("a file that is none says where") {
  CHECK_THROWS_WITH(parse_known_bugs("[[bug]\n"), Catch::Contains("known_bugs.toml:1"));
  CHECK_THROWS_WITH(parse_known_bugs("[[bug]]\nlibrary = \"x\"\n"), Catch::Contains("no affected"));
  CHECK_THROWS_WITH(parse_known_bugs("[[bug]]\nlibrary = \"x\"\naffected = \"1.0\"\n"), Catch::Contains("no range"));
}

TEST_CASE("a config that brings a known bug about makes it an error") {
  for (const char* version : {"0.14.1", "0.14.2"}) {
    INFO(version);
    CHECK(worst(check_known_bugs, with_package("deepspeed", version, with_deepspeed(kOffload))) == Level::error);
  }
  CHECK(worst(check_known_bugs, with_package("deepspeed", "0.14.0", with_deepspeed(kOffload))) != Level::error);
}

TEST_CASE("without a config a bug of a release is a warning, and with another config none") {
  CHECK(
      says(run_check(check_known_bugs, with_package("deepspeed", "0.14.2")), Level::warning, "offload_optimizer=cpu"));
  CHECK_FALSE(says(run_check(check_known_bugs, with_package("deepspeed", "0.14.2", with_deepspeed(kPlain))),
                   Level::warning, "zero3, offload"));
}

TEST_CASE("a module's own id is overwritten up to DeepSpeed 0.16.3 at stage 3") {
  const auto told = [](const std::string& version, const char* config) {
    return says(run_check(check_known_bugs, with_package("deepspeed", version, with_deepspeed(config))), Level::warning,
                "overwrites module.id");
  };
  CHECK(told("0.15.4", kOffload));
  CHECK(told("0.16.3", kOffload));
  CHECK_FALSE(told("0.16.4", kOffload));
  CHECK_FALSE(told("0.15.4", kPlain));
}

TEST_CASE("packages without a known bug are told as one line") {
  const auto lines = run_check(check_known_bugs, with_package("deepspeed", "0.19.8", with_deepspeed(kPlain)));
  CHECK(lines.size() == 1);
  CHECK(worst(lines) == Level::ok);
  Facts none = sample_facts();
  none.packages = {};
  CHECK(run_check(check_known_bugs, none).empty());
}

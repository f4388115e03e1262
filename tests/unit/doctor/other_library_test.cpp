#include "doctor/config/other_library.h"

#include <catch2/catch.hpp>

using namespace devsan::doctor;

namespace {

std::string refused(const std::string& json, Library expected) {
  Document document = parse_json_config("config.json", json);
  refuse_of_other_library(document, expected);
  return document.error + document.cure;
}

}  // namespace

TEST_CASE("a config for the other library is told by its keys") {
  const std::string deepspeed = R"({"train_batch_size": 8, "fp16": {"enabled": true}, "zero_optimization": {}})";
  const std::string accelerate = R"({"distributed_type": "FSDP", "num_processes": 2, "fp16": true})";
  CHECK(refused(deepspeed, Library::deepspeed).empty());
  CHECK(refused(accelerate, Library::accelerate).empty());
  CHECK(refused(deepspeed, Library::accelerate).find("Give it with --deepspeed.") != std::string::npos);
  CHECK(refused(accelerate, Library::deepspeed).find("Give it with --accelerate.") != std::string::npos);
}

TEST_CASE("a config with a few keys of the other library, or of neither, is left alone") {
  CHECK(refused(R"({"distributed_type": "NO", "num_processes": 1, "train_batch_size": 8, "zero_optimization": {},
                    "optimizer": {}})",
                Library::accelerate)
            .empty());
  CHECK(refused(R"({"learning_rate": 1, "epochs": 3})", Library::deepspeed).empty());
  CHECK(refused("{}", Library::accelerate).empty());
  CHECK(refused(R"({"fp16": {}})", Library::deepspeed).empty());
}

#include "doctor/driver/driver.h"

#include <catch2/catch.hpp>

using namespace devsan::doctor;
using namespace std::chrono_literals;

namespace {

constexpr char kMissing[] = "libdevsan_no_such_driver.so.1";

}  // namespace

TEST_CASE("a driver tells its GPUs by CUDA and by NVML") {
  const DriverAnswer answer = ask_driver({TOY_TWO_GPUS, TOY_TWO_GPUS});
  CHECK(answer.trouble.empty());
  REQUIRE(answer.works());
  CHECK(answer.cuda_path == TOY_TWO_GPUS);
  CHECK(answer.cuda_version == 12040);
  CHECK(answer.version == "550.54.14");
  REQUIRE(answer.visible.size() == 1);
  CHECK(answer.visible[0].name == "Toy 100");
  CHECK(answer.visible[0].capability() == 86);
  CHECK(answer.visible[0].memory == std::uint64_t{24} << 30);
  CHECK(answer.visible[0].uuid == "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f");
  REQUIRE(answer.all.size() == 2);
  CHECK(answer.all[0].mig);
  CHECK(answer.all[0].instances == std::vector<std::string>{"GPU-0001"});
}

TEST_CASE("without a driver there is an answer that says so") {
  const DriverAnswer answer = ask_driver({kMissing, kMissing});
  CHECK(answer.trouble.empty());
  CHECK_FALSE(answer.loaded());
  CHECK(answer.cuda_load_error.find(kMissing) != std::string::npos);
  CHECK_FALSE(answer.nvml_error.empty());
}

TEST_CASE("a driver that crashes takes only its own process down") {
  const DriverAnswer answer = ask_driver({TOY_CRASH, kMissing});
  CHECK_FALSE(answer.works());
  CHECK(answer.trouble.find("signal 6") != std::string::npos);
}

TEST_CASE("a driver that hangs is left") {
  const DriverAnswer answer = ask_driver({TOY_HANG, kMissing}, 200ms);
  CHECK_FALSE(answer.works());
  CHECK(answer.trouble.find("no answer") != std::string::npos);
}

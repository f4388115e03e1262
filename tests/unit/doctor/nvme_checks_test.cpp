// What `devsan doctor` says of offloading to NVMe.
#include "../launch/temporary_directory.h"
#include "doctor/memory/estimate.h"
#include "sample_facts.h"

using namespace devsan::doctor;

namespace {

Folder disk() {
  return {"/nvme", true, true, true, "", std::uint64_t{1} << 40};
}

// A config whose optimizer is offloaded to /nvme, with more settings of that and of other sections.
Facts offloaded(const std::string& more = "", const std::string& sections = "") {
  Facts facts = with_deepspeed(
      R"({"bf16": {"enabled": true}, "optimizer": {"type": "Adam"}, "zero_optimization": {"stage": 3,
          "offload_optimizer": {"device": "nvme", "nvme_path": "/nvme")" +
      more + "}}" + sections + "}");
  facts.folders["/nvme"] = disk();
  return facts;
}

Facts offloaded_param(const std::string& more = "", const std::string& sections = "") {
  Facts facts = with_deepspeed(
      R"({"bf16": {"enabled": true}, "zero_optimization": {"stage": 3,
          "offload_param": {"device": "nvme", "nvme_path": "/nvme")" +
      more + "}}" + sections + "}");
  facts.folders["/nvme"] = disk();
  return facts;
}

std::vector<Line> judged(const Facts& facts) {
  return run_check(check_deepspeed_nvme, facts);
}

}  // namespace

TEST_CASE("offloading to a folder with room is sound") {
  CHECK(worst(judged(offloaded())) == Level::ok);
  CHECK(worst(judged(offloaded_param())) == Level::ok);
}

TEST_CASE("nothing is said where nothing is on NVMe") {
  CHECK(judged(with_deepspeed(R"({"zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}}})")).empty());
}

TEST_CASE("nvme without a path is an error") {
  const Facts facts = with_deepspeed(R"({"zero_optimization": {"stage": 3, "offload_param": {"device": "nvme"}}})");
  CHECK(says(judged(facts), Level::error, "without nvme_path"));
}

TEST_CASE("the folder is held against this machine") {
  Facts facts = offloaded();
  Folder& folder = facts.folders["/nvme"];
  SECTION("not there") {
    folder.nearest = "/";
    folder.there = false;
    CHECK(says(judged(facts), Level::warning, "DeepSpeed makes it in /:"));
    folder.writable = false;
    CHECK(says(judged(facts), Level::error, "may not make it in /"));
  }
  SECTION("not writable") {
    folder.writable = false;
    CHECK(says(judged(facts), Level::error, "cannot be written to by this user"));
  }
  SECTION("a file") {
    folder.is_directory = false;
    CHECK(says(judged(facts), Level::error, "is no folder"));
  }
  SECTION("in memory") {
    folder.kind = "tmpfs";
    CHECK(says(judged(facts), Level::warning, "stays in host memory"));
  }
  SECTION("over the network") {
    folder.kind = "nfs";
    CHECK(says(judged(facts), Level::warning, "over the network"));
  }
  SECTION("not looked at") {
    facts.folders.clear();
    CHECK(worst(judged(facts)) == Level::ok);
  }
}

TEST_CASE("the folder has room for what all ranks of a node write") {
  Facts facts = offloaded();
  facts.plan = {std::uint64_t{8'000'000'000}, 8, 8};
  CHECK(worst(judged(facts)) == Level::ok);
  facts.folders["/nvme"].free = std::uint64_t{100} << 30;
  CHECK(says(judged(facts), Level::error, "No space left"));  // 16 bytes each
}

TEST_CASE("an optimizer has a buffer for each tensor that it works on") {
  CHECK(says(judged(offloaded(R"(, "buffer_count": 3)")), Level::error, "Set it to 4"));
  CHECK(worst(judged(offloaded(R"(, "buffer_count": 4)"))) == Level::ok);
}

TEST_CASE("a pipeline needs buffers for each group that is in memory") {
  CHECK(says(judged(offloaded(R"(, "pipeline_read": true)")), Level::warning, "Set it to 8"));
  CHECK(worst(judged(offloaded(R"(, "pipeline_read": true, "buffer_count": 8)"))) == Level::ok);
  Facts facts = offloaded(R"(, "pipeline_read": true, "pipeline_write": true, "buffer_count": 8)");
  CHECK(worst(judged(facts)) == Level::warning);
  facts.plan.params = std::uint64_t{4'000'000'000};
  CHECK(says(judged(facts), Level::error, "Set it to 12"));
}

TEST_CASE("a buffer holds a parameter that is offloaded") {
  CHECK(says(judged(offloaded_param(R"(, "buffer_size": 500000)")), Level::error, "More elements"));
  CHECK(worst(judged(offloaded_param(R"(, "buffer_size": 524288)"))) == Level::ok);
  CHECK(worst(judged(offloaded_param(R"(, "buffer_size": 524288)", R"(, "aio": {"block_size": 4194304})"))) ==
        Level::error);
  CHECK(worst(judged(offloaded_param(R"(, "buffer_count": 0)"))) == Level::error);
}

TEST_CASE("parameters that all fit in max_in_cpu are not on NVMe") {
  Facts facts = offloaded_param();
  facts.plan.params = std::uint64_t{1'000'000'000};
  CHECK(says(judged(facts), Level::warning, "none on NVMe"));
  facts.plan.params = std::uint64_t{7'000'000'000};
  CHECK(worst(judged(facts)) == Level::ok);
}

TEST_CASE("settings of aio are what DeepSpeed's C++ takes") {
  // Each is told once, by the check of what is on NVMe or by that of keys.
  const auto judged = [](const Facts& facts) {
    std::vector<Line> lines = run_check(check_deepspeed_keys, facts);
    for (Line& line : run_check(check_deepspeed_nvme, facts)) lines.push_back(std::move(line));
    CHECK(std::ranges::count_if(lines, [](const Line& line) { return line.level != Level::ok; }) <= 1);
    return lines;
  };
  for (const char* wrong :
       {R"("block_size": 1e6)", R"("block_size": "1048576")", R"("block_size": 1000)", R"("queue_depth": 0)",
        R"("intra_op_parallelism": 0)", R"("intra_op_parallelism": null)", R"("single_submit": "no")"}) {
    CAPTURE(wrong);
    CHECK(worst(judged(offloaded("", std::string(R"(, "aio": {)") + wrong + "}"))) == Level::error);
  }
  CHECK(worst(judged(offloaded("", R"(, "aio": {"block_size": 262144, "queue_depth": 32})"))) == Level::ok);
  CHECK(says(judged(offloaded("", R"(, "aio": {"thread_count": 4})")), Level::warning, "intra_op_parallelism"));
}

TEST_CASE("buffers are locked, whatever pin_memory says") {
  Facts facts = offloaded_param(R"(, "pin_memory": false)");
  facts.machine.locked_memory = Limit{false, 8 << 20};
  CHECK(says(judged(facts), Level::error, "whatever pin_memory says"));
  facts.machine.locked_memory = Limit{true, 0};
  CHECK(worst(judged(facts)) == Level::ok);
}

TEST_CASE("buffers of the optimizer are as large as a group") {
  DeepSpeedView view;
  view.optimizer.device = "nvme";
  view.optimizer.buffer_count = 4;
  view.sub_group_size = 1000;
  CHECK(buffer_bytes(view, std::nullopt).total() == 0);
  CHECK(buffer_bytes(view, 500).total() == 4 * 500 * 4);
  CHECK(buffer_bytes(view, 5000).total() == 4 * 1000 * 4);
}

TEST_CASE("where buffers for NVMe take too much memory, the cure is smaller ones") {
  Facts facts = offloaded();
  facts.plan = {std::uint64_t{64'000'000'000}, 32, 32};
  CHECK(says(run_check(check_memory, facts), Level::error, "Make sub_group_size"));
}

TEST_CASE("a folder is read as it is, or as the one that it would be made in") {
  devsan::launch::TemporaryDirectory there;
  there.write("file", "");
  CHECK(read_folder(there.path()).there);
  CHECK(read_folder(there.path()).writable);
  const Folder missing = read_folder(there.path() / "a/b");
  CHECK_FALSE(missing.there);
  CHECK(missing.nearest == there.path());
  CHECK(missing.is_directory);
  CHECK(missing.free > 0);
  CHECK_FALSE(read_folder(there.path() / "file/a").is_directory);
  CHECK(read_folder("/dev/shm").kind == "tmpfs");
}

#include "doctor/checks/visible_list.h"

#include <catch2/catch.hpp>

using namespace devsan::doctor;

namespace {

Gpu gpu(const std::string& uuid, std::vector<std::string> instances = {}) {
  Gpu made;
  made.uuid = uuid;
  made.mig = !instances.empty();
  made.instances = std::move(instances);
  return made;
}

const std::vector<Gpu> kGpus = {gpu("GPU-aaaa-1"), gpu("GPU-aabb-2"), gpu("GPU-cc-3", {"MIG-1111", "MIG-2222"})};

VisibleList read(std::string_view text) {
  return read_visible_list(text, kGpus);
}

}  // namespace

TEST_CASE("numbers of GPUs that are there are taken") {
  for (const char* text : {"0", "0,1,2", "2, 1", " 0", "+1"}) {
    INFO(text);
    const VisibleList list = read(text);
    CHECK(list.taken == list.entries);
    CHECK(list.why.empty());
    CHECK(list.by_index);
  }
}

TEST_CASE("the list ends at a number that is out of range, and at a negative one") {
  CHECK(read("0,3,1").taken == 1);
  CHECK(read("0,3,1").stopped_at == "3");
  CHECK(read("0,3,1").why.find("3 GPUs") != std::string::npos);
  CHECK(read("7").taken == 0);
  CHECK(read("0,-1,1").taken == 1);
  CHECK(read("0,-1,1").stopped_at == "-1");
  CHECK(read("99999999999999999999999").taken == 0);
}

TEST_CASE("an entry that stands there twice hides every GPU") {
  CHECK(read("0,1,0").doubled == "0");
  CHECK(read("0,1,0").taken == 0);
  CHECK(read("GPU-cc,GPU-cc").doubled == "GPU-cc");
}

TEST_CASE("nothing and -1 hide every GPU on purpose") {
  for (const char* text : {"", " ", "-1", "-1,0"}) {
    INFO(text);
    CHECK(read(text).hides_all);
  }
  CHECK_FALSE(read("0").hides_all);
}

TEST_CASE("a UUID may be cut short as long as it means one GPU") {
  CHECK(read("GPU-aaaa").taken == 1);
  CHECK(read("GPU-aabb,GPU-cc").taken == 2);
  CHECK(read("GPU-aa").why.find("several") != std::string::npos);
  CHECK(read("GPU-dd").why.find("no GPU") != std::string::npos);
}

TEST_CASE("a process takes one MIG instance") {
  CHECK(read("MIG-1111").taken == 1);
  CHECK(read("MIG-3333").why.find("no MIG instance") != std::string::npos);
  CHECK(read("MIG-1111,MIG-2222").taken == 1);
  CHECK(read("MIG-1111,MIG-2222").why.find("second") != std::string::npos);
  CHECK(read("MIG-GPU-cc-3/1/0").taken == 1);  // the form of drivers before 470
}

TEST_CASE("forms are not mixed, and other words mean nothing") {
  CHECK(read("0,GPU-cc").why.find("form") != std::string::npos);
  CHECK(read("0,,1").stopped_at.empty());
  CHECK(read("0,,1").taken == 1);
  CHECK(read("cuda:0").why.find("neither") != std::string::npos);
  CHECK(read("all").why.find("NVIDIA_VISIBLE_DEVICES") != std::string::npos);
}

TEST_CASE("where the GPUs are not known, only the form counts") {
  CHECK(read_visible_list("5", {}).taken == 1);
  CHECK(read_visible_list("GPU-x", {}).taken == 1);
  CHECK(read_visible_list("x", {}).taken == 0);
}

TEST_CASE("a comma at the end of the list hides nothing") {
  CHECK(read("0,1,").why.empty());
  CHECK(read("0,1,").taken == 2);
  CHECK(read("0,,1").taken == 1);
  CHECK(read(",").hides_all);
}

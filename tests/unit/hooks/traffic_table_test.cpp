#include "hooks/inprocess/events/traffic_table.h"

#include <catch2/catch.hpp>
#include <memory>

namespace devsan::hooks {
namespace {

TrafficKey key_of(std::uint32_t site, trace::TrafficKind kind) {
  TrafficKey key;
  key.site = trace::SiteId{site};
  key.kind = kind;
  return key;
}

TEST_CASE("traffic is new once for each site, kind and file") {
  const auto table = std::make_unique<TrafficTable>();
  bool is_new = false;
  auto* first = table->find_or_claim(key_of(3, trace::TrafficKind::wait), 1, &is_new);
  REQUIRE(first != nullptr);
  CHECK(is_new);
  is_new = false;
  CHECK(table->find_or_claim(key_of(3, trace::TrafficKind::wait), 1, &is_new) == first);
  CHECK_FALSE(is_new);
  CHECK(table->find_or_claim(key_of(3, trace::TrafficKind::copy), 1, &is_new) != first);
  CHECK(is_new);
  is_new = false;
  REQUIRE(table->find_or_claim(key_of(3, trace::TrafficKind::wait), 2, &is_new) != nullptr);  // in a fork child
  CHECK(is_new);
}

TEST_CASE("a full table records nothing more, and forgets nothing") {
  const auto table = std::make_unique<TrafficTable>();
  std::size_t written = 0;
  for (std::uint32_t site = 1; site <= 4000; ++site) {
    bool is_new = false;
    table->find_or_claim(key_of(site, trace::TrafficKind::wait), 1, &is_new);
    if (is_new) ++written;
  }
  CHECK(written >= 512);
  CHECK(written <= 1024);
  std::size_t again = 0;
  for (std::uint32_t site = 1; site <= 4000; ++site) {
    bool is_new = false;
    if (table->find_or_claim(key_of(site, trace::TrafficKind::wait), 1, &is_new) != nullptr) ++again;
    CHECK_FALSE(is_new);
  }
  CHECK(again == written);
}

}  // namespace
}  // namespace devsan::hooks

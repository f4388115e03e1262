#include "hooks/inprocess/events/extent.h"

#include <catch2/catch.hpp>
#include <random>
#include <set>
#include <vector>

namespace devsan::hooks {
namespace {

using Numbers = std::vector<std::int64_t>;

const char storage = 0;

Extent view(std::int64_t offset, const Numbers& sizes, const Numbers& strides) {
  return extent_of(&storage, 4, offset, sizes, strides);
}

std::set<std::int64_t> elements_of(std::int64_t offset, const Numbers& sizes, const Numbers& strides) {
  std::set<std::int64_t> all{offset};
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    std::set<std::int64_t> more;
    for (const std::int64_t at : all) {
      for (std::int64_t index = 0; index < sizes[k]; ++index) more.insert(at + index * strides[k]);
    }
    all = std::move(more);
  }
  return all;
}

bool share(const std::set<std::int64_t>& one, const std::set<std::int64_t>& other) {
  for (const std::int64_t at : one) {
    if (other.contains(at)) return true;
  }
  return false;
}

TEST_CASE("rows of a table do not overlap, nor do its columns, and a row overlaps a column") {
  const Extent row = view(8, {4}, {1});
  const Extent next_row = view(12, {4}, {1});
  const Extent column = view(1, {6}, {4});
  const Extent next_column = view(2, {6}, {4});
  CHECK_FALSE(overlap(row, next_row));
  CHECK_FALSE(overlap(column, next_column));
  CHECK(overlap(row, column));
  CHECK_FALSE(overlap(view(8, {1, 1}, {4, 1}), next_column));
  CHECK(overlap(view(0, {6, 4}, {4, 1}), column));
}

TEST_CASE("the last dimension's slots do not overlap, however many dimensions are in front of it") {
  const auto slot = [](std::int64_t k) { return view(k, {2, 3, 5}, {45, 15, 3}); };
  CHECK_FALSE(overlap(slot(0), slot(1)));
  CHECK_FALSE(overlap(slot(2), slot(1)));
  CHECK(overlap(slot(1), slot(1)));
}

TEST_CASE("what is empty, or in another storage, overlaps with nothing") {
  const char other = 0;
  CHECK_FALSE(overlap(view(0, {0, 4}, {4, 1}), view(0, {4}, {1})));
  CHECK_FALSE(overlap(view(0, {4}, {1}), {&other}));
  CHECK_FALSE(overlap({}, {}));
  CHECK(overlap({&storage}, view(1000, {1}, {1})));
}

TEST_CASE("views that share an element always overlap") {
  std::mt19937 random(7);
  const auto below = [&](int limit) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(limit)); };
  int told_apart = 0;
  for (int round = 0; round < 20000; ++round) {
    Numbers sizes[2];
    Numbers strides[2];
    std::int64_t offsets[2];
    for (int k = 0; k < 2; ++k) {
      offsets[k] = below(40);
      for (std::int64_t dim = below(4); dim > 0; --dim) {
        sizes[k].push_back(below(4));
        strides[k].push_back(below(13));
      }
    }
    const bool told = overlap(view(offsets[0], sizes[0], strides[0]), view(offsets[1], sizes[1], strides[1]));
    told_apart += told ? 0 : 1;
    if (told) continue;
    CHECK_FALSE(share(elements_of(offsets[0], sizes[0], strides[0]), elements_of(offsets[1], sizes[1], strides[1])));
  }
  CHECK(told_apart > 5000);
}

}  // namespace
}  // namespace devsan::hooks

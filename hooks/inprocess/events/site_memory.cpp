#include "hooks/inprocess/events/site_memory.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <limits>
#include <span>
#include <utility>

#include "hooks/inprocess/bridge/live_storages.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/events/holder_search.h"
#include "hooks/inprocess/provenance/stack.h"
#include "trace/clock.h"
#include "trace/hash_index.h"
#include "trace/memory_series.h"

namespace devsan::hooks {

namespace {

// From one census to the next: this many nanoseconds, and as many times what the last one took.
constexpr std::int64_t kLeastInterval = 20'000'000;
constexpr std::int64_t kCostFactor = 2000;

// The first ones of a process come sooner, for the sake of short runs: a growth shows in some twenty of them.
struct EarlyCensuses {
  std::uint32_t until;
  std::int64_t cost_factor;
};
constexpr EarlyCensuses kEarly[] = {{32, 20}, {64, 200}};

// However fast they come, of the iterations every third has one, and later each that is a thirty-second of them all
// behind the one before: then there are enough of them in every part of a run. As long as these have taken no more than
// so many nanoseconds of the processor, and a fiftieth of the time since the first of them.
constexpr std::uint32_t kLeastSteps = 3;
constexpr std::uint32_t kShareOfSteps = 32;
constexpr std::int64_t kPacedCost = 5'000'000;
constexpr std::int64_t kPacedCostFactor = 50;
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t kSites = 4096;
constexpr std::size_t kProbes = 16;
constexpr int kMaxRecords = 256;
constexpr int kRecordsOfLargest = 64;  // of these, the rest is for those that grow
constexpr std::size_t kLargest = 12;
constexpr std::uint32_t kRisesToRecord = 4;
constexpr std::uint32_t kRisesToSearch = 6;
constexpr int kSearchesOfSite = 3;
// Where the process itself grows, and no tensors need do so, graphs are looked at. What it takes and gives back on its
// own is less than so much.
constexpr std::uint64_t kRiseOfHost = 65536;
constexpr int kSearchesOfGraphs = 5;

struct Site {
  std::uint64_t key;  // 0: the place is free
  std::uint64_t count;
  std::uint64_t bytes;
  std::uint64_t most_count;
  std::uint64_t most_bytes;
  std::uint32_t rises;  // censuses that found more than every one before
  std::int32_t searches;
  trace::SiteMemoryPayload* series;
};

std::uint64_t key_of(const trace::LineageNode& node) noexcept {
  return std::uint64_t(node.site) << 24 | std::uint64_t(node.op) << 8 | std::uint64_t(node.device);
}

class Sites final : public LiveStorageVisitor {
 public:
  void storage(const void*, trace::LineageId node, std::uint64_t bytes) noexcept override {
    Site* site = find(node);
    if (site == nullptr) return;
    ++site->count;
    site->bytes += bytes;
  }

  bool take(const trace::MemorySample& sample, trace::SeriesClock clock) noexcept {
    for (const std::uint16_t place : known()) sites_[place].count = sites_[place].bytes = 0;
    if (!visit_live_storages(*this)) return false;
    const std::uint64_t large = least_of_largest();
    for (const std::uint16_t place : known()) note(sites_[place], sample, clock, large);
    search_holders(sample);
    return true;
  }

  std::int64_t next_cost_factor() noexcept {
    ++censuses_;
    for (const EarlyCensuses& early : kEarly) {
      if (censuses_ < early.until) return early.cost_factor;
    }
    return kCostFactor;
  }

  explicit constexpr Sites(bool computed_only) noexcept : computed_only_(computed_only) {}

  void forget_sites() noexcept {
    for (const std::uint16_t place : known()) {
      trace::clear_samples(sites_[place].series);
      sites_[place] = {};
    }
    known_count_ = 0;
    last_node_ = trace::LineageId::none;
    last_ = nullptr;
  }

  void start() noexcept {
    forget_sites();
    host_ = {};
    censuses_ = 0;
    records_ = 0;
  }

 private:
  // That of a lineage node, which the one before often is as well.
  Site* find(trace::LineageId node) noexcept {
    if (node == last_node_) return last_;
    const trace::LineageNode words = runtime.recorder->lineage(node);
    const std::uint64_t key = key_of(words);
    last_node_ = node;
    last_ = counts(words.how) ? place_of(key) : nullptr;
    return last_;
  }

  bool counts(trace::How how) const noexcept {
    return computed_only_ ? how == trace::How::derived : how != static_cast<trace::How>(0);
  }

  Site* place_of(std::uint64_t key) noexcept {
    const std::uint64_t hash = trace::hash_bytes(&key, sizeof key);
    for (std::size_t probe = 0; probe < kProbes; ++probe) {
      Site& site = sites_[(hash + probe) % kSites];
      if (site.key == 0) {
        site.key = key;
        known_[known_count_++] = static_cast<std::uint16_t>(&site - sites_.data());
      }
      if (site.key == key) return &site;
    }
    return nullptr;
  }

  std::uint64_t least_of_largest() noexcept {
    std::array<std::uint64_t, kLargest> largest{};
    for (const std::uint16_t place : known()) {
      if (sites_[place].bytes <= largest.back()) continue;
      largest.back() = sites_[place].bytes;
      std::ranges::sort(largest, std::greater<>());
    }
    return std::max<std::uint64_t>(largest.back(), 1);
  }

  void note(Site& site, const trace::MemorySample& when, trace::SeriesClock clock, std::uint64_t large) noexcept {
    if (site.count > site.most_count || site.bytes > site.most_bytes) {
      ++site.rises;
      site.most_count = std::max(site.most_count, site.count);
      site.most_bytes = std::max(site.most_bytes, site.bytes);
    }
    const bool wanted =
        site.rises >= kRisesToRecord ? records_ < kMaxRecords : site.bytes >= large && records_ < kRecordsOfLargest;
    if (site.series == nullptr && wanted) begin_record(site, clock);
    trace::MemorySample sample = when;
    sample.used = site.bytes;
    sample.held = site.count;
    trace::add_sample(site.series, sample);
  }

  void begin_record(Site& site, trace::SeriesClock clock) noexcept {
    const GrowingSite told = told_of(site);
    site.series = runtime.recorder->add_site_memory(told.site, told.op, told.device, clock);
    ++records_;
    keep_source_lines(told.site);
  }

  static GrowingSite told_of(const Site& site) noexcept {
    return {trace::SiteId(site.key >> 24), trace::OperatorId(site.key >> 8 & 0xffff),
            trace::DeviceSlot(site.key & 0xff), site.count, site.series};
  }

  struct Host {
    std::uint64_t most = 0;
    std::uint32_t rises = 0;
    std::int32_t searches = 0;
  };

  // More rises are waited for before each further look.
  bool wants_graphs(const trace::MemorySample& sample) noexcept {
    if (sample.used > host_.most + kRiseOfHost) {
      host_.most = sample.used;
      ++host_.rises;
    }
    return !computed_only_ && host_.searches < kSearchesOfGraphs && sample.step >= kStepsToSearch &&
           host_.rises >= kRisesToSearch << host_.searches;
  }

  // More rises are waited for before each further attempt.
  void search_holders(const trace::MemorySample& sample) noexcept {
    std::array<GrowingSite, kSitesOfSearch> growing;
    std::array<Site*, kSitesOfSearch> asked;
    std::size_t count = 0;
    for (const std::uint16_t place : known()) {
      Site& site = sites_[place];
      if (site.series == nullptr || site.searches >= kSearchesOfSite || count == growing.size()) continue;
      if (site.rises < kRisesToSearch << (2 * site.searches) || sample.step < kStepsToSearch) continue;
      if (site.series->holder != trace::StringId::none) continue;
      asked[count] = &site;
      growing[count++] = told_of(site);
    }
    const bool graphs = wants_graphs(sample);
    if ((count == 0 && !graphs) || !search_holders_soon({growing.data(), count}, graphs, sample.step)) return;
    host_.searches += graphs ? 1 : 0;
    for (std::size_t k = 0; k < count; ++k) ++asked[k]->searches;
  }

  static constexpr std::uint32_t kStepsToSearch = 12;

  std::span<const std::uint16_t> known() const noexcept { return {known_.data(), known_count_}; }

  std::array<Site, kSites> sites_{};
  std::array<std::uint16_t, kSites> known_{};  // places of sites_ that have one
  std::size_t known_count_ = 0;
  std::uint32_t censuses_ = 0;
  int records_ = 0;
  Host host_;
  trace::LineageId last_node_ = trace::LineageId::none;
  Site* last_ = nullptr;
  bool computed_only_;
};

// Censuses paced by steps, and what they have cost. Any thread asks whether one is due; the one that looks adds them.
struct PacedCensuses {
  std::atomic<std::uint32_t> next_step{0};
  std::atomic<std::int64_t> next_time{0};
  std::int64_t begin = 0;
  std::int64_t cost = 0;

  bool due(std::uint32_t step, std::int64_t now) const noexcept {
    return step >= next_step.load(std::memory_order_relaxed) && now >= next_time.load(std::memory_order_relaxed);
  }

  void add(std::int64_t from, std::int64_t took) noexcept {
    if (begin == 0) begin = from;
    cost += took;
    next_time.store(begin + (cost - kPacedCost) * kPacedCostFactor, std::memory_order_relaxed);
  }

  void looked_at(std::uint32_t step) noexcept {
    next_step.store(step + std::max(kLeastSteps, step / kShareOfSteps), std::memory_order_relaxed);
  }

  void stop() noexcept { next_time.store(kNever, std::memory_order_relaxed); }

  void start() noexcept {
    begin = 0;
    cost = 0;
    next_time.store(0, std::memory_order_relaxed);
    start_at(0);
  }

  void start_at(std::uint32_t step) noexcept { next_step.store(step, std::memory_order_relaxed); }
};

// What the steps of one kind of clock have shown.
struct Counted {
  Sites sites;
  PacedCensuses paced{};
  std::uint64_t epoch = 0;
  std::int64_t next_census = 0;

  // A forked child begins anew, with a trace of its own.
  void start_in_this_process() noexcept {
    const std::uint64_t here = runtime.epoch_page->epoch.load(std::memory_order_relaxed);
    if (std::exchange(epoch, here) == here) return;
    sites.start();
    paced.start();
    next_census = 0;
  }

  // What censuses may cost is counted over the whole process.
  void start_at(std::uint32_t step) noexcept {
    start_in_this_process();
    sites.forget_sites();
    paced.start_at(step);
  }

  void give_up() noexcept {
    next_census = kNever;
    paced.stop();
    runtime.recorder->add_notice("cannot read the sizes of tensors: findings about memory do not name what keeps it");
  }
};

constinit Counted by_steps{.sites = Sites(false)};
constinit Counted by_rounds{.sites = Sites(true)};

Counted& counted_by(trace::SeriesClock clock) noexcept {
  return clock == trace::SeriesClock::rounds ? by_rounds : by_steps;
}

}  // namespace

bool wants_census(std::uint32_t step, trace::SeriesClock clock, std::int64_t now) noexcept {
  return clock != trace::SeriesClock::shared_tensors && counted_by(clock).paced.due(step, now);
}

void take_site_census(trace::MemorySample sample, trace::SeriesClock clock) noexcept {
  const std::int64_t begin = trace::clock_ns(CLOCK_MONOTONIC);
  Counted& counted = counted_by(clock);
  counted.start_in_this_process();
  const bool in_turn = begin >= counted.next_census;
  const bool paced = wants_census(sample.step, clock, begin);
  if (!in_turn && !paced) return;
  const std::int64_t worked = trace::clock_ns(CLOCK_THREAD_CPUTIME_ID);
  if (!counted.sites.take(sample, clock)) return counted.give_up();
  const std::int64_t end = trace::clock_ns(CLOCK_MONOTONIC);
  counted.paced.looked_at(sample.step);
  if (paced) counted.paced.add(begin, trace::clock_ns(CLOCK_THREAD_CPUTIME_ID) - worked);
  if (in_turn) counted.next_census = end + std::max(kLeastInterval, counted.sites.next_cost_factor() * (end - begin));
}

void begin_rounds() noexcept {
  by_rounds.start_at(0);
}

}  // namespace devsan::hooks

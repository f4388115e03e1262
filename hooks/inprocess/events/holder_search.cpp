#include "hooks/inprocess/events/holder_search.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "hooks/inprocess/bridge/graph_walk.h"
#include "hooks/inprocess/common/busy.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/common/thread_state.h"
#include "hooks/inprocess/events/graph_lengths.h"
#include "hooks/inprocess/interpreter/python_api.h"
#include "hooks/inprocess/provenance/lineage_nodes.h"
#include "hooks/inprocess/provenance/stack.h"
#include "hooks/inprocess/snapshot/object_search.h"

namespace devsan::hooks {

namespace {

constexpr std::string_view kAnyEntry = "[...]";
constexpr std::ptrdiff_t kFewEntries = 8;
constexpr std::ptrdiff_t kDequeMaximum = 64;  // dequeobject::maxlen; -1 for none

bool drops_the_oldest(const void* container) noexcept {
  return type_name(container) == "collections.deque" && field<std::ptrdiff_t>(container, kDequeMaximum) >= 0;
}

// A way to a tensor, with the entries of containers left open: "self.history[...].loss".
struct Way {
  std::string text;
  bool open = false;     // through a container of many
  bool bounded = false;  // through one that does not grow for ever
};

Way way_to(const ObjectSearch& search, std::uint32_t index) {
  const Place& at = search.place(index);
  if (search.is_root(index)) return {written(at.link), false, false};
  Way way = way_to(search, at.parent);
  const void* holder = search.place(at.parent).object;
  const bool one_of_many = at.link.kind == LinkKind::key && size_of(holder) > kFewEntries;
  if (at.link.kind == LinkKind::index || at.link.kind == LinkKind::member || one_of_many) {
    way.text += kAnyEntry;
    way.open = true;
    way.bounded = way.bounded || drops_the_oldest(holder);
  } else {
    way.text += written(at.link);
  }
  return way;
}

// How many nodes a graph has, and how many of them one site has made.
class NodesOfGraph final : public GraphVisitor {
 public:
  explicit NodesOfGraph(trace::SiteId site = trace::SiteId::none) : site_(site) {}

  void node(trace::SiteId site) override {
    ++all_;
    if (site == site_) ++of_site_;
  }

  std::uint32_t all() const noexcept { return all_; }
  std::uint32_t of_site() const noexcept { return of_site_; }

 private:
  trace::SiteId site_;
  std::uint32_t all_ = 0;
  std::uint32_t of_site_ = 0;
};

// How many nodes of one graph each site has made.
class NodesOfSites final : public GraphVisitor {
 public:
  explicit NodesOfSites(std::span<const GrowingSite> sites) : sites_(sites) {}

  void node(trace::SiteId site) override {
    if (site == trace::SiteId::none) return;
    for (std::size_t k = 0; k < sites_.size(); ++k) counts_[k] += sites_[k].site == site ? 1 : 0;
  }

  std::uint64_t count(std::size_t site) const noexcept { return counts_[site]; }

 private:
  std::span<const GrowingSite> sites_;
  std::array<std::uint64_t, kSitesOfSearch> counts_{};
};

// Counts by which ways the tensors of each site are reached.
class Holders final : public TensorObserver {
 public:
  explicit Holders(std::span<const GrowingSite> sites) : sites_(sites), search_(*this) {}

  // `lengths`: where to look for graphs that become longer; null where that is not wanted.
  void look(const void* thread, GraphLengths* lengths, std::uint32_t step) {
    search_.run_threads(thread);
    std::vector<std::size_t> kept_by_none;
    for (std::size_t k = 0; k < sites_.size(); ++k) {
      if (!tell(k)) kept_by_none.push_back(k);
    }
    if (!kept_by_none.empty()) tell_graphs(kept_by_none);
    if (lengths != nullptr) tell_longer_graph(*lengths, step);
  }

  void tensor(std::uint32_t place, const c10::TensorImpl* tensor) override {
    const trace::LineageId tag = tensor_history(tensor);
    if (tag == trace::LineageId::none) return;
    const trace::LineageNode node = runtime.recorder->lineage(tag);
    if (graphs_.size() < kGraphs && has_graph(tensor))
      graphs_.push_back({place, tensor, node.site, node.op, node.device});
    for (std::size_t k = 0; k < sites_.size(); ++k) {
      if (sites_[k].site != node.site || sites_[k].op != node.op || sites_[k].device != node.device) continue;
      const Way way = way_to(search_, place);
      Found& found = found_[k][way.text];
      ++found.count;
      found.open = way.open;
      found.bounded = way.bounded;
      if (found.graph == nullptr && has_graph(tensor)) found.graph = tensor;
    }
  }

 private:
  struct Found {
    std::uint64_t count = 0;
    bool open = false;
    bool bounded = false;
    const c10::TensorImpl* graph = nullptr;  // of those, the first that has one
  };

  // A tensor with a graph that an object of the program holds.
  struct Graph {
    std::uint32_t place;
    const c10::TensorImpl* tensor;
    trace::SiteId made_at;
    trace::OperatorId op;
    trace::DeviceSlot device;
  };

  // What no object holds, a running sum may: `total += loss` keeps the graph of every step. Of several tensors that
  // lead to most of it the first counts.
  void tell_graphs(const std::vector<std::size_t>& sites) const {
    std::vector<NodesOfSites> counts(graphs_.size(), NodesOfSites(sites_));
    for (std::size_t g = 0; g < graphs_.size(); ++g) visit_graph(graphs_[g].tensor, counts[g], kNodesOfGraph);
    for (const std::size_t site : sites) {
      const auto most = std::ranges::max_element(counts, {}, [&](const auto& nodes) { return nodes.count(site); });
      if (most == counts.end() || most->count(site) < kLeastNodes || most->count(site) * 2 < sites_[site].count)
        continue;
      const Graph& graph = graphs_[static_cast<std::size_t>(most - counts.begin())];
      const Way way = way_to(search_, graph.place);
      if (way.open) continue;
      const trace::StringId name = runtime.recorder->intern_string(way.text);
      trace::Recorder::set_holder(sites_[site].series, name, trace::kHolderGraph | trace::kHolderByGraph,
                                  graph.made_at);
    }
  }

  // After a backward a graph holds no results any more, but `total += loss` still keeps its nodes: those that the line
  // of the tensor itself has made are one more for each step.
  void tell_longer_graph(GraphLengths& lengths, std::uint32_t step) const {
    for (const Graph& graph : graphs_) {
      if (graph.made_at == trace::SiteId::none) continue;
      NodesOfGraph nodes(graph.made_at);
      visit_graph(graph.tensor, nodes, kNodesOfGraph);
      if (nodes.of_site() < kLeastNodes) continue;
      const Way way = way_to(search_, graph.place);
      if (way.open) continue;
      const trace::StringId name = runtime.recorder->intern_string(way.text);
      if (!lengths.grows({name, graph.made_at, nodes.of_site(), step})) continue;
      trace::SiteMemoryPayload* const record =
          runtime.recorder->add_site_memory(graph.made_at, graph.op, graph.device, trace::SeriesClock::iterations);
      trace::Recorder::set_holder(record, name, trace::kHolderGraph | trace::kHolderByGraph | trace::kHolderLonger,
                                  graph.made_at);
      keep_source_lines(graph.made_at);
      return;
    }
  }

  // The way that most of them are reached by; where that is a single one, there has to be no more than it.
  bool tell(std::size_t site) const {
    const auto& ways = found_[site];
    const auto most = std::ranges::max_element(ways, {}, [](const auto& way) { return way.second.count; });
    if (most == ways.end()) return false;
    const auto& [text, found] = *most;
    if (found.count * 2 < sites_[site].count && !(found.open && found.count >= kManyEntries)) return false;
    std::uint32_t flags = found.bounded ? trace::kHolderBounded : 0U;
    if (found.graph != nullptr) {
      NodesOfGraph nodes;
      visit_graph(found.graph, nodes, kNodesOfGraph);
      flags |= trace::kHolderGraph | nodes.all() << trace::kHolderNodesShift;
    }
    trace::Recorder::set_holder(sites_[site].series, runtime.recorder->intern_string(text), flags);
    return true;
  }

  static constexpr std::uint64_t kManyEntries = 64;  // a search looks at a part of a large container
  static constexpr std::size_t kGraphs = 64;
  static constexpr std::size_t kNodesOfGraph = 20000;
  static constexpr std::uint64_t kLeastNodes = 6;

  std::span<const GrowingSite> sites_;
  std::array<std::map<std::string, Found>, kSitesOfSearch> found_;
  std::vector<Graph> graphs_;
  ObjectSearch search_;
};

// What earlier searches have seen of graphs, in this process.
constinit GraphLengths lengths{};

// Written before it is asked for, and not again before somebody has looked.
struct Request {
  enum class State { none, asked, looked_at };
  std::atomic<State> state{State::none};
  std::atomic<bool> queued{false};  // at the interpreter
  std::array<GrowingSite, kSitesOfSearch> sites;
  std::size_t count = 0;
  bool graphs = false;
  std::uint32_t step = 0;
  std::uint64_t epoch = 0;
};
constinit Request request{};

// In a child that was forked in between, the records are the parent's.
bool is_of_this_process() noexcept {
  return request.epoch == runtime.epoch_page->epoch.load(std::memory_order_relaxed);
}

// On the main thread, with the GIL.
int search_when_asked(void*) noexcept {
  request.queued.store(false, std::memory_order_release);
  if (const void* thread = python.PyGILState_GetThisThreadState()) search_holders_now(thread);
  return 0;
}

}  // namespace

bool holders_are_wanted() noexcept {
  return request.state.load(std::memory_order_acquire) == Request::State::asked && is_of_this_process();
}

void search_holders_now(const void* thread) noexcept {
  ThreadState& state = thread_state();
  if (state.busy || !interpreter_lives()) return;
  auto asked = Request::State::asked;
  if (!request.state.compare_exchange_strong(asked, Request::State::looked_at, std::memory_order_acquire)) return;
  if (is_of_this_process()) {
    const PythonSection section;
    const Busy busy(state);
    try {
      GraphLengths* const wanted = request.graphs && lengths.wants_more(request.epoch) ? &lengths : nullptr;
      Holders({request.sites.data(), request.count}).look(thread, wanted, request.step);
    } catch (const std::exception&) {  // names are worth no failure
    }
  }
  request.state.store(Request::State::none, std::memory_order_release);
}

bool search_holders_soon(std::span<const GrowingSite> sites, bool graphs, std::uint32_t step) noexcept {
  if (!runtime.has_python || !interpreter_lives()) return false;
  const bool waits = request.state.load(std::memory_order_acquire) != Request::State::none;
  if (waits && is_of_this_process()) return false;
  std::ranges::copy(sites.first(std::min(sites.size(), kSitesOfSearch)), request.sites.begin());
  request.count = std::min(sites.size(), kSitesOfSearch);
  request.graphs = graphs;
  request.step = step;
  request.epoch = runtime.epoch_page->epoch.load(std::memory_order_relaxed);
  request.state.store(Request::State::asked, std::memory_order_release);
  // A call that a main thread has not come to yet will do; there is room for a few of them only.
  if (request.queued.exchange(true) || python.Py_AddPendingCall(search_when_asked, nullptr) == 0) return true;
  request.queued.store(false, std::memory_order_release);
  request.state.store(Request::State::none, std::memory_order_release);
  return false;
}

}  // namespace devsan::hooks

#include "report/model/collective_names.h"

#include <algorithm>
#include <array>
#include <utility>

namespace devsan::report {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 24> kCollectiveNames = {{
    {"allreduce_", "all_reduce"},
    {"allreduce_coalesced_", "all_reduce_coalesced"},
    {"broadcast_", "broadcast"},
    {"reduce_", "reduce"},
    {"allgather_", "all_gather"},
    {"_allgather_base_", "all_gather_into_tensor"},
    {"allgather_coalesced_", "all_gather_coalesced"},
    {"allgather_into_tensor_coalesced_", "all_gather_into_tensor_coalesced"},
    {"reduce_scatter_", "reduce_scatter"},
    {"_reduce_scatter_base_", "reduce_scatter_tensor"},
    {"reduce_scatter_tensor_coalesced_", "reduce_scatter_tensor_coalesced"},
    {"gather_", "gather"},
    {"scatter_", "scatter"},
    {"alltoall_", "all_to_all"},
    {"alltoall_base_", "all_to_all_single"},
    {"barrier", "barrier"},
    {"monitored_barrier_", "monitored_barrier"},
    {"send", "send"},
    {"recv_", "recv"},
    {"recv_any_source_", "recv"},
    {"all_gather_single_", "all_gather_single"},
    {"reduce_scatter_single_", "reduce_scatter_single"},
    {"all_to_all_single_", "all_to_all_single"},
    {"monitored_barrier", "monitored_barrier"},
}};

}  // namespace

std::string collective_name(std::string_view op) {
  if (const std::size_t colons = op.rfind("::"); colons != op.npos) op.remove_prefix(colons + 2);
  const auto known = std::ranges::find(kCollectiveNames, op, &decltype(kCollectiveNames)::value_type::first);
  if (known != kCollectiveNames.end()) return std::string(known->second);
  while (op.ends_with('_')) op.remove_suffix(1);
  return std::string(op);
}

}  // namespace devsan::report

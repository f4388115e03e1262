#include "trace/reader.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "trace/source_titles.h"

namespace devsan::trace {
namespace {

// A chain in a sound file has kMaxLineageDepth nodes and the origin.
constexpr std::size_t kMaxChain = std::size_t{2} * kMaxLineageDepth;

// What holds a text, or the place that a site is, in a report.
constexpr std::uint64_t kHolder = 64;

template <class Entry>
std::optional<Entry> copied(std::span<const std::byte> bytes) {
  if (bytes.size() != sizeof(Entry)) return std::nullopt;
  Entry entry;
  std::memcpy(&entry, bytes.data(), sizeof(entry));
  return entry;
}

// A text of the header, up to its first zero byte.
template <std::size_t size>
std::string text_in(const std::array<char, size>& bytes) {
  return {bytes.begin(), std::find(bytes.begin(), bytes.end(), '\0')};
}

// Of a number that is kept as the next one, so that 0 is none.
std::optional<int> before(std::uint32_t next) {
  if (next == 0 || next > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
  return static_cast<int>(next - 1);
}

}  // namespace

std::span<const std::byte> TraceFile::section(SectionKind kind) const {
  return sections_[static_cast<std::size_t>(kind) - 1];
}

std::span<const std::byte> TraceFile::entry(SectionKind kind, std::uint64_t index, std::size_t size) const {
  const std::span<const std::byte> all = section(kind);
  if (index >= all.size() / size) return {};
  return all.subspan(index * size, size);
}

bool TraceFile::make(std::uint64_t bytes) const {
  if (is_used_up()) return false;
  made_->fetch_add(bytes, std::memory_order_relaxed);
  return true;
}

std::string TraceFile::host() const {
  return text_in(header_.host);
}

std::string run_of(const FileHeader& header) {
  return text_in(header.run);
}

std::optional<int> TraceFile::node() const {
  return before(header_.node_plus_one);
}

std::optional<int> TraceFile::attempt() const {
  return before(header_.attempt_plus_one);
}

std::string TraceFile::run() const {
  return run_of(header_);
}

std::string_view TraceFile::string(StringId id) const {
  if (const auto title = source_lines_.find({id, kTitleLine}); title != source_lines_.end()) id = title->second;
  const auto offset = static_cast<std::uint32_t>(id);
  const std::span<const std::byte> strings = section(SectionKind::strings);
  if (id == StringId::none || offset % sizeof(std::uint32_t) != 0) return {};
  const auto length = copied<std::uint32_t>(entry(SectionKind::strings, offset / 4, sizeof(std::uint32_t)));
  if (!length || *length > strings.size() - offset - sizeof(std::uint32_t) || !make(kHolder + *length)) return {};
  return {reinterpret_cast<const char*>(strings.data()) + offset + sizeof(std::uint32_t), *length};
}

std::string_view TraceFile::operator_name(OperatorId id) const {
  if (id == OperatorId::none) return {};
  const auto name = copied<StringId>(entry(SectionKind::operators, static_cast<std::uint16_t>(id), sizeof(StringId)));
  return name ? string(*name) : std::string_view();
}

std::string_view TraceFile::device_name(DeviceSlot slot) const {
  const auto index = static_cast<std::size_t>(slot);
  return index < kMaxDevices && slot != DeviceSlot::none ? string(header_.device_names[index]) : std::string_view();
}

std::optional<Site> TraceFile::site(SiteId id) const {
  if (id == SiteId::none || !make(kHolder)) return std::nullopt;
  const auto site = copied<Site>(entry(SectionKind::sites, static_cast<std::uint32_t>(id), sizeof(Site)));
  return site && site->innermost.file != StringId::none ? site : std::nullopt;
}

std::optional<LineageNode> TraceFile::lineage(LineageId id) const {
  if (id == LineageId::none) return std::nullopt;
  const auto node =
      copied<LineageNode>(entry(SectionKind::lineage, static_cast<std::uint32_t>(id), sizeof(LineageNode)));
  return node && node->how >= How::created && node->how <= How::called ? node : std::nullopt;
}

std::vector<LineageNode> TraceFile::lineage_chain(LineageId id) const {
  std::vector<LineageNode> chain;
  while (chain.size() < kMaxChain) {
    const std::optional<LineageNode> node = lineage(id);
    if (!node || node->how == How::called) break;
    chain.push_back(*node);
    if (node->parent >= id) break;  // a parent is always stored before its children
    id = node->parent;
  }
  return chain;
}

std::vector<SiteId> TraceFile::calls_from(LineageId id) const {
  std::vector<SiteId> calls;
  while (calls.size() < kMaxCalls) {
    const std::optional<LineageNode> call = lineage(id);
    if (!call || call->how != How::called) break;
    calls.push_back(call->site);
    if (call->parent >= id) break;
    id = call->parent;
  }
  return calls;
}

std::string_view TraceFile::source_line(StringId file, std::int32_t line) const {
  const auto found = source_lines_.find({file, line});
  return found != source_lines_.end() ? string(found->second) : std::string_view();
}

}  // namespace devsan::trace

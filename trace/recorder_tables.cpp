// The tables of a trace file: strings, operators, sites, lineage and device names, each entry stored once.
#include <algorithm>
#include <cstring>

#include "trace/file_access.h"
#include "trace/recorder.h"

namespace devsan::trace {
namespace {

constexpr std::size_t kMaxString = std::size_t{64} << 10;

std::string_view cut(std::string_view text) noexcept {
  if (text.size() <= kMaxString) return text;
  std::size_t size = kMaxString;
  // Not in the middle of a UTF-8 sequence, unless the text is no UTF-8 anyway.
  while (size > kMaxString - 3 && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;
  return {text.data(), size};
}

FileHeader& header_of(std::byte* base) noexcept {
  return *reinterpret_cast<FileHeader*>(base);
}

}  // namespace

StringId Recorder::intern_string(std::string_view text) noexcept {
  std::byte* const base = writable();
  if (base == nullptr || text.empty()) return StringId::none;
  text = cut(text);
  const std::uint64_t hash = hash_bytes(text.data(), text.size());
  const auto equal = [&](std::uint32_t id) { return string(StringId{id}) == text; };
  if (const std::uint32_t known = strings_.find(hash, equal); known != 0) return StringId{known};
  const StringId added = append_string(base, text);
  if (added == StringId::none) return added;
  return StringId{strings_.insert(hash, static_cast<std::uint32_t>(added), equal)};
}

StringId Recorder::append_string(std::byte* base, std::string_view text) noexcept {
  FileHeader& head = header_of(base);
  const std::uint64_t room = (sizeof(std::uint32_t) + text.size() + 3) / 4 * 4;
  const std::uint64_t offset = take_room(head.strings_used, layout_[SectionKind::strings].size, room);
  if (offset == kNoRoom<std::uint64_t>) {
    count_one(head.strings_lost);
    return StringId::none;
  }
  std::byte* const entry = section(base, SectionKind::strings) + offset;
  std::memcpy(entry + sizeof(std::uint32_t), text.data(), text.size());
  atom(*reinterpret_cast<std::uint32_t*>(entry))
      .store(static_cast<std::uint32_t>(text.size()), std::memory_order_release);
  return StringId{static_cast<std::uint32_t>(offset)};
}

std::string_view Recorder::string(StringId id) const noexcept {
  std::byte* const base = base_.load(std::memory_order_acquire);
  const std::uint64_t offset = static_cast<std::uint32_t>(id);
  if (base == nullptr || id == StringId::none || offset % 4 != 0) return {};
  const std::uint64_t size = layout_[SectionKind::strings].size;
  if (offset + sizeof(std::uint32_t) > size) return {};
  std::byte* const entry = section(base, SectionKind::strings) + offset;
  const std::uint32_t length = atom(*reinterpret_cast<std::uint32_t*>(entry)).load(std::memory_order_acquire);
  if (length > size - offset - sizeof(length)) return {};
  return {reinterpret_cast<const char*>(entry + sizeof(length)), length};
}

OperatorId Recorder::add_operator(std::string_view qualified_name) noexcept {
  const StringId name = intern_string(qualified_name);
  std::byte* const base = writable();
  if (base == nullptr || name == StringId::none) return OperatorId::none;
  const std::uint64_t hash = hash_bytes(qualified_name.data(), qualified_name.size());
  const auto equal = [&](std::uint32_t id) {
    return string(operator_name(static_cast<OperatorId>(id))) == qualified_name;
  };
  if (const std::uint32_t known = operators_.find(hash, equal); known != 0) return static_cast<OperatorId>(known);
  FileHeader& head = header_of(base);
  const std::uint32_t id = take_room(head.operators_used, layout_.entries(SectionKind::operators), 1);
  if (id == kNoRoom<std::uint32_t>) {
    count_one(head.strings_lost);
    return OperatorId::none;
  }
  auto* const names = reinterpret_cast<StringId*>(section(base, SectionKind::operators));
  atom(names[id]).store(name, std::memory_order_release);
  return static_cast<OperatorId>(operators_.insert(hash, id, equal));
}

StringId Recorder::operator_name(OperatorId id) const noexcept {
  std::byte* const base = base_.load(std::memory_order_acquire);
  const auto index = static_cast<std::size_t>(id);
  if (base == nullptr || id == OperatorId::none || index >= layout_.entries(SectionKind::operators)) {
    return StringId::none;
  }
  auto* const names = reinterpret_cast<StringId*>(section(base, SectionKind::operators));
  return atom(names[index]).load(std::memory_order_acquire);
}

SiteId Recorder::add_site(const Site& site) noexcept {
  std::byte* const base = writable();
  Site entry = site;
  if (entry.innermost.file == StringId::none) entry.innermost = entry.user;
  if (base == nullptr || entry.innermost.file == StringId::none) return SiteId::none;
  const std::uint64_t hash = hash_bytes(&entry, sizeof(entry));
  auto* const sites = reinterpret_cast<Site*>(section(base, SectionKind::sites));
  const auto equal = [&](std::uint32_t id) { return std::memcmp(&sites[id], &entry, sizeof(entry)) == 0; };
  if (const std::uint32_t known = sites_.find(hash, equal); known != 0) return SiteId{known};
  FileHeader& head = header_of(base);
  const std::uint32_t id = take_room(head.sites_used, layout_.entries(SectionKind::sites), 1);
  if (id == kNoRoom<std::uint32_t>) {
    count_one(head.sites_lost);
    return SiteId::none;
  }
  // A site whose innermost file is none is not there yet: that field comes last.
  Site unpublished = entry;
  unpublished.innermost.file = StringId::none;
  sites[id] = unpublished;
  atom(sites[id].innermost.file).store(entry.innermost.file, std::memory_order_release);
  return SiteId{sites_.insert(hash, id, equal)};
}

Site Recorder::site(SiteId id) const noexcept {
  std::byte* const base = base_.load(std::memory_order_acquire);
  const auto index = static_cast<std::size_t>(id);
  if (base == nullptr || id == SiteId::none || index >= layout_.entries(SectionKind::sites)) return {};
  auto& entry = reinterpret_cast<Site*>(section(base, SectionKind::sites))[index];
  if (atom(entry.innermost.file).load(std::memory_order_acquire) == StringId::none) return {};
  return entry;
}

LineageId Recorder::add_lineage(const LineageNode& node) noexcept {
  std::byte* const base = writable();
  if (base == nullptr || node.how < How::created || node.how > How::called) return LineageId::none;
  std::uint64_t halves[2];
  static_assert(sizeof(halves) == sizeof(node) && offsetof(LineageNode, how) >= sizeof(std::uint64_t));
  std::memcpy(halves, &node, sizeof(node));
  const std::uint64_t hash = hash_bytes(halves, sizeof(halves));
  auto* const nodes = reinterpret_cast<std::uint64_t*>(section(base, SectionKind::lineage));
  const auto equal = [&](std::uint32_t id) {
    return std::memcmp(&nodes[std::size_t{id} * 2], halves, sizeof(halves)) == 0;
  };
  if (const std::uint32_t known = lineage_.find(hash, equal); known != 0) return LineageId{known};
  FileHeader& head = header_of(base);
  const std::uint32_t id = take_room(head.lineage_used, layout_.entries(SectionKind::lineage), 1);
  if (id == kNoRoom<std::uint32_t>) {
    count_one(head.lineage_lost);
    return LineageId::none;
  }
  // A node without `how`, which is in the second half, is not there yet.
  nodes[std::size_t{id} * 2] = halves[0];
  atom(nodes[std::size_t{id} * 2 + 1]).store(halves[1], std::memory_order_release);
  return LineageId{lineage_.insert(hash, id, equal)};
}

LineageNode Recorder::lineage(LineageId id) const noexcept {
  LineageNode node{};
  std::byte* const base = base_.load(std::memory_order_acquire);
  const auto index = static_cast<std::size_t>(id);
  if (base == nullptr || id == LineageId::none || index >= layout_.entries(SectionKind::lineage)) return node;
  auto* const nodes = reinterpret_cast<std::uint64_t*>(section(base, SectionKind::lineage));
  const std::uint64_t second = atom(nodes[index * 2 + 1]).load(std::memory_order_acquire);
  const std::uint64_t halves[2] = {nodes[index * 2], second};
  std::memcpy(&node, halves, sizeof(node));
  return node.how == How{} ? LineageNode{} : node;
}

DeviceSlot Recorder::intern_device(std::string_view name) noexcept {
  const StringId id = intern_string(name);
  std::byte* const base = writable();
  if (base == nullptr || id == StringId::none) return DeviceSlot::none;
  FileHeader& head = header_of(base);
  for (std::size_t slot = 1; slot < kMaxDevices; ++slot) {
    StringId there = StringId::none;
    if (atom(head.device_names[slot]).compare_exchange_strong(there, id) || there == id || string(there) == name) {
      return static_cast<DeviceSlot>(slot);
    }
  }
  count_one(head.strings_lost);
  return DeviceSlot::none;
}

StringId Recorder::device_name(DeviceSlot slot) const noexcept {
  std::byte* const base = base_.load(std::memory_order_acquire);
  const auto index = static_cast<std::size_t>(slot);
  if (base == nullptr || slot == DeviceSlot::none || index >= kMaxDevices) return StringId::none;
  return atom(header_of(base).device_names[index]).load(std::memory_order_acquire);
}

}  // namespace devsan::trace

#include "trace/layout.h"

#include <algorithm>

namespace devsan::trace {
namespace {

// Sections start at pages, so that the rings, which change with every operator, share no page with anything else.
constexpr std::uint64_t kPage = 4096;

constexpr std::uint64_t whole_pages(std::uint64_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

class Builder {
 public:
  explicit Builder(std::uint64_t file_size) : at_(sizeof(FileHeader)) { layout_.file_size = file_size; }

  // `share` is the size in a file of default size; a larger or smaller file has as much more or less of it.
  void scaled(SectionKind kind, std::uint32_t entry_size, std::uint64_t share) {
    fixed(kind, entry_size, share / (kDefaultFileSize / kPage) * (layout_.file_size / kPage));
  }

  void fixed(SectionKind kind, std::uint32_t entry_size, std::uint64_t size) {
    const std::uint64_t paged = whole_pages(size);
    layout_.sections[static_cast<std::size_t>(kind) - 1] = {kind, entry_size, at_, paged};
    at_ += paged;
  }

  void rest(SectionKind kind, std::uint32_t entry_size) { fixed(kind, entry_size, layout_.file_size - at_); }

  const FileLayout& layout() const { return layout_; }

 private:
  FileLayout layout_;
  std::uint64_t at_;
};

}  // namespace

static_assert(kMaxFileSize / sizeof(LineageNode) < std::size_t{1} << 24, "a LineageId fits into LineageNode::calls");

FileLayout make_layout(std::uint64_t requested) noexcept {
  if (requested == 0) requested = kDefaultFileSize;
  Builder builder(std::clamp(requested, kMinFileSize, kMaxFileSize) / kPage * kPage);
  builder.scaled(SectionKind::strings, 1, std::uint64_t{3} << 20);
  // Not scaled: torch has the same operators however small the file is.
  builder.fixed(SectionKind::operators, sizeof(StringId), 8192 * sizeof(StringId));
  builder.scaled(SectionKind::sites, sizeof(Site), 32768 * sizeof(Site));
  builder.scaled(SectionKind::lineage, sizeof(LineageNode), 131072 * sizeof(LineageNode));
  builder.scaled(SectionKind::threads, sizeof(ThreadRing), 256 * sizeof(ThreadRing));
  builder.rest(SectionKind::events, 1);
  return builder.layout();
}

}  // namespace devsan::trace

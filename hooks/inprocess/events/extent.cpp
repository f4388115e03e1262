#include "hooks/inprocess/events/extent.h"

#include <algorithm>
#include <array>

namespace devsan::hooks {

namespace {

constexpr std::size_t kMaxDims = 8;

struct Dim {
  std::uint64_t size;
  std::uint64_t stride;
};

// The dimensions by their strides, the smallest first; those that go on where the one before ends are one with it.
class Dims {
 public:
  void add(Dim dim) noexcept {
    Dim* const at = std::upper_bound(dims_.data(), dims_.data() + count_, dim,
                                     [](const Dim& a, const Dim& b) { return a.stride < b.stride; });
    std::move_backward(at, dims_.data() + count_, dims_.data() + count_ + 1);
    *at = dim;
    ++count_;
  }
  void join() noexcept {
    std::size_t last = 0;
    for (std::size_t k = 1; k < count_; ++k) {
      if (dims_[k].stride == dims_[last].stride * dims_[last].size) {
        dims_[last].size *= dims_[k].size;
      } else {
        dims_[++last] = dims_[k];
      }
    }
    count_ = count_ == 0 ? 0 : last + 1;
  }
  std::size_t count() const noexcept { return count_; }
  const Dim& operator[](std::size_t k) const noexcept { return dims_[k]; }

 private:
  std::array<Dim, kMaxDims> dims_{};
  std::size_t count_ = 0;
};

std::uint64_t length_of(const Extent& extent) noexcept {
  return extent.period != 0 ? extent.width : extent.end - extent.begin;
}

}  // namespace

Extent extent_of(const void* storage, std::uint64_t itemsize, std::int64_t offset, std::span<const std::int64_t> sizes,
                 std::span<const std::int64_t> strides) noexcept {
  Extent extent{storage};
  if (sizes.size() > kMaxDims || sizes.size() != strides.size()) return extent;
  extent.begin = static_cast<std::uint64_t>(offset) * itemsize;
  Dims dims;
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    if (sizes[k] == 0) {
      extent.end = extent.begin;
      return extent;
    }
    if (sizes[k] == 1 || strides[k] == 0) continue;
    dims.add({static_cast<std::uint64_t>(sizes[k]), static_cast<std::uint64_t>(strides[k]) * itemsize});
  }
  dims.join();
  std::uint64_t inner = itemsize;
  for (std::size_t k = 0; k + 1 < dims.count(); ++k) inner += (dims[k].size - 1) * dims[k].stride;
  const Dim outer = dims.count() == 0 ? Dim{1, inner} : dims[dims.count() - 1];
  extent.end = extent.begin + (outer.size - 1) * outer.stride + inner;
  if (outer.size > 1 && inner < outer.stride) {
    extent.period = outer.stride;
    extent.width = inner;
  }
  return extent;
}

bool overlap(const Extent& one, const Extent& other) noexcept {
  if (one.storage == nullptr || one.storage != other.storage || one.end <= other.begin || other.end <= one.begin)
    return false;
  const std::uint64_t period = std::max(one.period, other.period);
  if (period == 0 || (one.period != other.period && one.period != 0 && other.period != 0)) return true;
  const std::uint64_t length = length_of(one);
  const std::uint64_t other_length = length_of(other);
  if (length >= period || other_length >= period) return true;
  const std::uint64_t behind = (other.begin % period + period - one.begin % period) % period;
  return behind < length || period - behind < other_length;
}

}  // namespace devsan::hooks

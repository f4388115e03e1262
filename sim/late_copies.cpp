#include "sim/late_copies.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/allocator.h"
#include "sim/devices.h"
#include "sim/guarded_pages.h"
#include "sim/host_alias.h"

namespace devsan::sim {

namespace detail {
std::atomic<std::uint64_t> waiting{0};
}

namespace {

using Ids = std::set<std::uint64_t>;  // of copies, in the order in which they were asked for
using StreamKey = std::pair<c10::DeviceIndex, c10::StreamId>;

StreamKey key_of(c10::Stream stream) {
  return {stream.device_index(), stream.id()};
}

c10::Stream current_stream(c10::Device device) {
  return c10::impl::VirtualGuardImpl(kSimulatedType).getStream(device);
}

// A tensor's place in memory, which does not keep the memory alive.
class Target {
 public:
  explicit Target(const at::Tensor& tensor)
      : storage_(tensor.storage().getWeakStorageImpl()),
        sizes_(tensor.sizes().vec()),
        strides_(tensor.strides().vec()),
        offset_(tensor.storage_offset()),
        options_(tensor.options().device(c10::DeviceType::CPU).requires_grad(false)) {}

  bool is_in(const c10::StorageImpl* storage) const { return storage_._unsafe_get_target() == storage; }

  // The storage is given to `alive`: who drops it last frees it, which must not happen under a lock.
  void take(const at::Tensor& source, std::vector<c10::intrusive_ptr<c10::StorageImpl>>& alive) const {
    c10::intrusive_ptr<c10::StorageImpl> storage = storage_.lock();
    if (!storage) return;
    alive.push_back(storage);
    const std::size_t bytes = at::detail::computeStorageNbytes(sizes_, strides_, options_.dtype().itemsize(),
                                                               static_cast<std::size_t>(offset_));
    if (storage->nbytes() < bytes) return;  // made smaller since
    auto* data =
        static_cast<char*>(storage->mutable_data()) + static_cast<std::size_t>(offset_) * options_.dtype().itemsize();
    const OpenPages open(data);
    at::Tensor view = at::from_blob(data, sizes_, strides_, options_);
    at::native::copy_(view, source, false);
  }

 private:
  c10::weak_intrusive_ptr<c10::StorageImpl> storage_;
  std::vector<std::int64_t> sizes_;
  std::vector<std::int64_t> strides_;
  std::int64_t offset_;
  at::TensorOptions options_;
};

struct LateCopy {
  Target target;
  at::Tensor source;  // on the host: pinned memory, or what the device held when its stream came to the copy
  bool to_device;
  Ids before;  // copies that its stream comes after
};

class LateCopies {
 public:
  void queue(c10::Stream stream, Target target, at::Tensor source, bool to_device) {
    const std::lock_guard lock(mutex_);
    Ids& before = before_[key_of(stream)];
    const std::uint64_t id = ++last_;
    waiting_.emplace(id, LateCopy{std::move(target), std::move(source), to_device, before});
    before.insert(id);
    publish();
  }

  void arrive(const c10::StorageImpl* storage, c10::Stream stream) {
    Finished finished;
    const std::lock_guard lock(mutex_);
    Ids due;
    for (const std::uint64_t id : before_[key_of(stream)]) {
      const auto found = waiting_.find(id);
      if (found != waiting_.end() && found->second.to_device && found->second.target.is_in(storage)) due.insert(id);
    }
    finish(due, finished);
  }

  void record(const void* event, c10::Stream stream) {
    const std::lock_guard lock(mutex_);
    events_[event] = before_[key_of(stream)];
  }

  void block(const void* event, c10::Stream stream) {
    const std::lock_guard lock(mutex_);
    const auto known = events_.find(event);
    if (known != events_.end()) before_[key_of(stream)].insert(known->second.begin(), known->second.end());
  }

  void order(c10::Stream first, c10::Stream second) {
    const std::lock_guard lock(mutex_);
    const Ids earlier = before_[key_of(first)];
    before_[key_of(second)].insert(earlier.begin(), earlier.end());
  }

  void forget(const void* event) {
    const std::lock_guard lock(mutex_);
    events_.erase(event);
  }

  void saw_event(const void* event) {
    Finished finished;
    const std::lock_guard lock(mutex_);
    const auto known = events_.find(event);
    if (known != events_.end()) finish(Ids(known->second), finished);
  }

  void saw_stream(c10::Stream stream) {
    Finished finished;
    const std::lock_guard lock(mutex_);
    finish(Ids(before_[key_of(stream)]), finished);
  }

  void saw_device(c10::DeviceIndex device) {
    Finished finished;
    const std::lock_guard lock(mutex_);
    Ids due;
    for (const auto& [key, before] : before_) {
      if (key.first == device) due.insert(before.begin(), before.end());
    }
    finish(due, finished);
  }

 private:
  // Outlives the lock: to free a tensor may take Python's GIL, for which its holder may wait here.
  struct Finished {
    std::vector<LateCopy> copies;
    std::vector<c10::intrusive_ptr<c10::StorageImpl>> storages;
  };

  // With a copy those are done that come before it: one may be the source of the other.
  void finish(const Ids& asked, Finished& finished) {
    Ids due;
    for (const std::uint64_t id : asked) {
      const auto found = waiting_.find(id);
      if (found == waiting_.end()) continue;
      due.insert(id);
      due.insert(found->second.before.begin(), found->second.before.end());
    }
    for (const std::uint64_t id : due) {
      const auto found = waiting_.find(id);
      if (found == waiting_.end()) continue;
      found->second.target.take(found->second.source, finished.storages);
      finished.copies.push_back(std::move(found->second));
      waiting_.erase(found);
    }
    if (!due.empty()) drop_done();
    publish();
  }

  // What is done needs no order any more.
  void drop_done() {
    const auto is_done = [this](std::uint64_t id) { return !waiting_.contains(id); };
    for (auto& [key, before] : before_) std::erase_if(before, is_done);
    for (auto& [event, before] : events_) std::erase_if(before, is_done);
    for (auto& [id, copy] : waiting_) std::erase_if(copy.before, is_done);
  }

  void publish() { detail::waiting.store(waiting_.size(), std::memory_order_release); }

  std::mutex mutex_;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, LateCopy> waiting_;
  std::map<StreamKey, Ids> before_;  // the copies that come before what a stream does next
  std::unordered_map<const void*, Ids> events_;
};

std::atomic<LateCopies*> g_late_copies{nullptr};  // once made, it outlives every tensor

// Runs `action` on the books where copies are late.
template <typename Action>
void with_books(Action action) {
  if (LateCopies* books = g_late_copies.load(std::memory_order_acquire)) action(*books);
}

at::Tensor without_gradient(const at::Tensor& tensor) {
  return at::Tensor(tensor.unsafeGetTensorImpl()->shallow_copy_and_detach(c10::VariableVersion(0), true));
}

// Whether PyTorch copies the bytes as they are, without a temporary tensor on the host: see copy_requires_temporaries
// in aten/src/ATen/native/cuda/Copy.cu, and what copy_kernel_cuda does where it answers yes.
bool is_direct(const at::Tensor& target, const at::Tensor& source) {
  if (target.is_conj() != source.is_conj() || target.is_neg() != source.is_neg()) return false;
  const bool same = target.sizes() == source.sizes() && target.dtype() == source.dtype();
  const bool same_layout = same && target.strides() == source.strides() && target.is_non_overlapping_and_dense();
  if (is_simulated(target)) return same_layout || (same && source.is_contiguous());
  return same_layout || target.is_contiguous();  // converted and spread out on the device
}

bool is_late(const at::Tensor& target, const at::Tensor& source) {
  const bool to_device = is_simulated(target);
  const at::Tensor& host = to_device ? source : target;
  if (to_device == is_simulated(source) || !host.device().is_cpu()) return false;
  if (target.layout() != at::kStrided || source.layout() != at::kStrided || target.numel() == 0) return false;
  return is_direct(target, source) && is_pinned(host.const_data_ptr());
}

}  // namespace

void make_copies_late() {
  g_late_copies.store(new LateCopies(), std::memory_order_release);
}

bool copies_are_late() noexcept {
  return g_late_copies.load(std::memory_order_relaxed) != nullptr;
}

bool take_late_copy(const at::Tensor& target, const at::Tensor& source) {
  LateCopies* books = g_late_copies.load(std::memory_order_acquire);
  if (books == nullptr || !is_late(target, source)) return false;
  const bool to_device = is_simulated(target);
  const c10::Stream stream = current_stream(to_device ? target.device() : source.device());
  arrive((to_device ? target : source).storage());
  at::Tensor held = to_device ? without_gradient(source) : host_alias(source).clone();
  books->queue(stream, Target(target), std::move(held), to_device);
  return true;
}

void note_done_copy(const at::Tensor& target, const at::Tensor& source, bool non_blocking) {
  with_books([&](LateCopies& books) {
    if (is_simulated(target) && is_simulated(source)) {
      // The copy is queued where it comes from, and what uses its target waits for it.
      books.order(current_stream(source.device()), current_stream(target.device()));
    } else if (!non_blocking || is_simulated(source)) {
      // With memory that is not pinned the driver waits, too, where the host is the target.
      books.saw_stream(current_stream(is_simulated(target) ? target.device() : source.device()));
    }
  });
}

void host_waits_for(c10::Device device) {
  with_books([&](LateCopies& books) { books.saw_stream(current_stream(device)); });
}

namespace detail {
void arrive(const c10::Storage& storage) {
  with_books(
      [&](LateCopies& books) { books.arrive(storage.unsafeGetStorageImpl(), current_stream(storage.device())); });
}
}  // namespace detail

void late_copies_record(const void* event, c10::Stream stream) {
  with_books([&](LateCopies& books) { books.record(event, stream); });
}

void late_copies_block(const void* event, c10::Stream stream) {
  with_books([&](LateCopies& books) { books.block(event, stream); });
}

void late_copies_forget(const void* event) noexcept {
  with_books([&](LateCopies& books) { books.forget(event); });
}

void late_copies_saw_event(const void* event) {
  with_books([&](LateCopies& books) { books.saw_event(event); });
}

void late_copies_saw_stream(c10::Stream stream) {
  with_books([&](LateCopies& books) { books.saw_stream(stream); });
}

void late_copies_saw_device(c10::DeviceIndex device) {
  with_books([&](LateCopies& books) { books.saw_device(device); });
}

}  // namespace devsan::sim

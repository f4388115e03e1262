// Asynchronous copies that are done as late as a device may do them, for programs that want to see their races: a copy
// between pinned memory and a device waits here until something comes after it. The host does by waiting for the copy's
// stream, device, or an event recorded behind it; an operator by using the device's side on a stream that comes after
// it. So who reads the target too early sees what it held before, and who overwrites the source too early sends the new
// values.
//
// Nothing is ever late unless it was asked for; then any thread may call any of these.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Storage.h>
#include <c10/core/Stream.h>

#include <atomic>

namespace devsan::sim {

// Called at most once, before the first copy.
void make_copies_late();
bool copies_are_late() noexcept;

// Takes over a copy with `non_blocking` that hardware would not wait for, to be done later; false for any other, which
// the caller does at once. The source of a copy to the device stays alive until then; a target that dies is forgotten.
bool take_late_copy(const at::Tensor& target, const at::Tensor& source);

// A copy between a device and the host, or two devices, was done at once: the streams that it waited for are known.
void note_done_copy(const at::Tensor& target, const at::Tensor& source, bool non_blocking);

// The calling thread waits for its current stream of a device, as it does for a number or a shape.
void host_waits_for(c10::Device device);

// The calling thread is about to use a storage of a device: copies to it are done, if its stream comes after them.
namespace detail {
extern std::atomic<std::uint64_t> waiting;
void arrive(const c10::Storage& storage);
}  // namespace detail
inline void arrive(const c10::Storage& storage) {
  if (detail::waiting.load(std::memory_order_acquire) != 0) detail::arrive(storage);
}

// What a program says of streams and events. An event is known by its address.
void late_copies_record(const void* event, c10::Stream stream);
void late_copies_block(const void* event, c10::Stream stream);
void late_copies_forget(const void* event) noexcept;
void late_copies_saw_event(const void* event);
void late_copies_saw_stream(c10::Stream stream);
void late_copies_saw_device(c10::DeviceIndex device);

}  // namespace devsan::sim

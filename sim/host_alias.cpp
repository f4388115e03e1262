#include "sim/host_alias.h"

#include <c10/core/CPUAllocator.h>

#include "sim/allocator.h"
#include "sim/devices.h"
#include "sim/guarded_pages.h"
#include "sim/late_copies.h"
#include "sim/layouts.h"

namespace devsan::sim {
namespace {

// A face keeps the storage alive that it is the face of, and its pages open: an operator may hold on to its operand.
struct Face {
  c10::Storage simulated;
  OpenPages pages;
};

void release_face(void* context) {
  delete static_cast<Face*>(context);
}

void release_storage(void* context) {
  delete static_cast<c10::Storage*>(context);
}

c10::Storage make_face(const c10::Storage& simulated) {
  arrive(simulated);
  void* data = const_cast<void*>(simulated.data());
  c10::DataPtr pointer(data, new Face{simulated, OpenPages(data)}, &release_face, c10::DeviceType::CPU);
  return {c10::Storage::use_byte_size_t(), simulated.nbytes(), std::move(pointer), c10::GetCPUAllocator(),
          simulated.resizable()};
}

bool same_shape(const at::Tensor& a, const at::Tensor& b) {
  return a.storage_offset() == b.storage_offset() && a.sizes() == b.sizes() && a.strides() == b.strides();
}

}  // namespace

c10::Storage HostAliases::alias_storage(const c10::Storage& simulated) {
  for (const auto& [known, host] : storages_) {
    if (known.is_alias_of(simulated)) return host;
  }
  storages_.emplace_back(simulated, make_face(simulated));
  return storages_.back().second;
}

at::Tensor HostAliases::alias(const at::Tensor& simulated) {
  for (const auto& [known, host] : tensors_) {
    if (known.is_same(simulated)) return host;
  }
  at::Tensor host = rebuild(simulated, c10::DeviceType::CPU,
                            {[this](const c10::Storage& storage) { return alias_storage(storage); },
                             [this](const at::Tensor& part) { return alias(part); }});
  tensors_.emplace_back(simulated, host);
  return host;
}

c10::Storage HostAliases::simulated_storage(const c10::Storage& host, c10::Device device) {
  for (const auto& [simulated, known] : storages_) {
    if (known.is_alias_of(host)) return simulated;
  }
  c10::StorageImpl* impl = host.unsafeGetStorageImpl();
  const std::size_t bytes = host.nbytes();
  c10::DataPtr memory;
  if (host.use_count() == 1) {
    memory = impl->set_data_ptr(c10::DataPtr(nullptr, c10::DeviceType::CPU));
  } else {  // somebody else holds this memory too, such as a cache of the operator's own
    memory =
        c10::DataPtr(const_cast<void*>(host.data()), new c10::Storage(host), &release_storage, c10::DeviceType::CPU);
  }
  c10::Storage made(c10::Storage::use_byte_size_t(), bytes, adopt_host_memory(std::move(memory), bytes, device.index()),
                    device_allocator(), true);
  storages_.emplace_back(made, host);  // a further result may be a view of this one
  return made;
}

at::Tensor HostAliases::simulated(const at::Tensor& host, c10::Device device) {
  if (!host.defined() || !host.device().is_cpu()) return host;
  for (const auto& [simulated, known] : tensors_) {
    if (known.is_same(host)) return simulated;
  }
  return rebuild(host, device,
                 {[&](const c10::Storage& storage) { return simulated_storage(storage, device); },
                  [&](const at::Tensor& part) { return this->simulated(part, device); }});
}

void HostAliases::write_back(const at::Tensor& simulated) {
  const at::Tensor host = alias(simulated);
  const std::vector<at::Tensor> parts = parts_of(simulated);
  if (parts.empty()) {
    write_back_strided(simulated, host);
    return;
  }
  const std::vector<at::Tensor> host_parts = parts_of(host);
  bool same_parts = simulated.sizes() == host.sizes();
  for (std::size_t index = 0; index < parts.size(); ++index) {
    const at::Tensor known = alias(parts[index]);
    write_back_strided(parts[index], known);
    same_parts = same_parts && known.is_same(host_parts[index]);
  }
  // Only what changed: a detached tensor refuses a change of its parts.
  if (same_parts && is_coalesced(simulated) == is_coalesced(host)) return;
  const c10::Device device = simulated.device();
  assign(simulated, host,
         {[&](const c10::Storage& storage) { return simulated_storage(storage, device); },
          [&](const at::Tensor& part) { return this->simulated(part, device); }});
}

void HostAliases::write_back_strided(const at::Tensor& simulated, const at::Tensor& host) {
  if (simulated.is_nested()) return;  // never resized
  const c10::Storage& to = simulated.storage();
  const c10::Storage& from = host.storage();
  if (from.data() != to.data()) {
    c10::StorageImpl* source = from.unsafeGetStorageImpl();
    const std::size_t bytes = from.nbytes();
    c10::DataPtr memory = source->set_data_ptr(c10::DataPtr(nullptr, c10::DeviceType::CPU));
    to.unsafeGetStorageImpl()->set_data_ptr_noswap(
        adopt_host_memory(std::move(memory), bytes, simulated.device().index()));
    to.unsafeGetStorageImpl()->set_nbytes(bytes);
  }
  if (!same_shape(simulated, host)) {
    simulated.unsafeGetTensorImpl()->set_sizes_and_strides(host.sizes(), host.strides(), host.storage_offset());
  }
  if (simulated.is_conj() != host.is_conj()) simulated.unsafeGetTensorImpl()->_set_conj(host.is_conj());
  if (simulated.is_neg() != host.is_neg()) simulated.unsafeGetTensorImpl()->_set_neg(host.is_neg());
}

at::Tensor host_alias(const at::Tensor& simulated) {
  if (!is_simulated(simulated)) return simulated;
  return rebuild(simulated, c10::DeviceType::CPU,
                 {[](const c10::Storage& storage) { return make_face(storage); },
                  [](const at::Tensor& part) { return host_alias(part); }});
}

}  // namespace devsan::sim

#include "sim/random.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <cstring>
#include <vector>

#include "sim/devices.h"

namespace devsan::sim {
namespace {

// Each operator takes one step, as CUDA's take a multiple of four.
constexpr std::uint64_t kStep = 4;
constexpr std::size_t kStateBytes = 2 * sizeof(std::uint64_t);

// splitmix64's finalizer: neighbouring offsets must not give related sequences.
std::uint64_t mix(std::uint64_t seed, std::uint64_t offset) {
  std::uint64_t z = seed + (offset / kStep + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

class SimulatedGenerator final : public c10::GeneratorImpl {
 public:
  explicit SimulatedGenerator(c10::DeviceIndex device)
      : GeneratorImpl(c10::Device(kSimulatedType, device), c10::DispatchKeySet(c10::DispatchKey::CUDA)) {}

  void set_current_seed(std::uint64_t seed) override {
    seed_ = seed;
    offset_ = 0;
  }
  std::uint64_t current_seed() const override { return seed_; }
  std::uint64_t seed() override {
    set_current_seed(c10::detail::getNonDeterministicRandom(true));
    return seed_;
  }
  void set_offset(std::uint64_t offset) override {
    TORCH_CHECK(offset % kStep == 0, "offset must be a multiple of 4");
    offset_ = offset;
  }
  std::uint64_t get_offset() const override { return offset_; }

  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    at::TensorBase state = at::detail::empty_cpu({static_cast<std::int64_t>(kStateBytes)}, at::kByte);
    const std::uint64_t words[2] = {seed_, offset_};
    std::memcpy(state.mutable_data_ptr(), words, kStateBytes);
    return state.getIntrusivePtr();
  }
  void set_state(const c10::TensorImpl& state) override {
    TORCH_CHECK(state.layout() == at::kStrided && state.device_type() == at::kCPU && state.dtype() == at::kByte,
                "RNG state must be a torch.ByteTensor");
    TORCH_CHECK(state.numel() == static_cast<std::int64_t>(kStateBytes) && state.is_contiguous(),
                "RNG state is wrong size");
    std::uint64_t words[2];
    std::memcpy(words, state.data(), kStateBytes);
    set_current_seed(words[0]);
    set_offset(words[1]);
  }

  std::uint64_t next_host_seed() {
    const std::lock_guard lock(mutex_);
    const std::uint64_t host_seed = mix(seed_, offset_);
    offset_ += kStep;
    return host_seed;
  }

 private:
  SimulatedGenerator* clone_impl() const override {
    auto* copy = new SimulatedGenerator(device_.index());
    copy->seed_ = seed_;
    copy->offset_ = offset_;
    return copy;
  }

  std::uint64_t seed_ = c10::default_rng_seed_val;
  std::uint64_t offset_ = 0;
};

thread_local bool t_default_wanted = false;

std::uint64_t next_host_seed(const at::Generator& generator) {
  return generator.get<SimulatedGenerator>()->next_host_seed();
}

}  // namespace

void next_generator_is_default(bool is_default) {
  t_default_wanted = is_default;
}

at::Generator make_generator(c10::DeviceIndex device) {
  if (t_default_wanted) return default_generator(device);
  const c10::DeviceIndex index = device < 0 ? current_device() : device;
  check_device(index);
  return at::make_generator<SimulatedGenerator>(index);
}

const at::Generator& default_generator(c10::DeviceIndex device) {
  static const auto* generators = [] {
    auto* all = new std::vector<at::Generator>();
    for (int index = 0; index < device_count(); ++index) {
      all->push_back(at::make_generator<SimulatedGenerator>(static_cast<c10::DeviceIndex>(index)));
      all->back().seed();
    }
    return all;
  }();
  const c10::DeviceIndex index = device < 0 ? current_device() : device;
  check_device(index);
  return (*generators)[static_cast<std::size_t>(index)];
}

at::Generator host_generator(const std::optional<at::Generator>& generator, c10::DeviceIndex device) {
  if (!generator || !generator->defined()) {
    return at::detail::createCPUGenerator(next_host_seed(default_generator(device)));
  }
  TORCH_CHECK(generator->device().type() == kSimulatedType, "Expected a '", kSimulatedType,
              "' device type for generator but found '", generator->device().type(), "'");
  return at::detail::createCPUGenerator(next_host_seed(*generator));
}

HostDefaultGenerator::HostDefaultGenerator(c10::DeviceIndex device) {
  at::Generator host = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(host.mutex());
  saved_ = host.clone();
  host.set_current_seed(next_host_seed(default_generator(device)));
}

HostDefaultGenerator::~HostDefaultGenerator() {
  const at::Generator& host = at::detail::getDefaultCPUGenerator();
  auto* current = host.get<at::CPUGeneratorImpl>();
  auto* saved = saved_.get<at::CPUGeneratorImpl>();
  const std::lock_guard lock(current->mutex_);
  current->set_engine(saved->engine());
  current->set_next_float_normal_sample(saved->next_float_normal_sample());
  current->set_next_double_normal_sample(saved->next_double_normal_sample());
}

}  // namespace devsan::sim

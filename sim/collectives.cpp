#include "sim/collectives.h"

#include <ATen/core/ivalue.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <memory>
#include <utility>
#include <vector>

#include "sim/capture.h"
#include "sim/device_guard.h"
#include "sim/devices.h"
#include "sim/host_alias.h"

namespace devsan::sim {
namespace {

using c10d::ReduceOp;
using Tensors = std::vector<at::Tensor>;
using WorkHandle = c10::intrusive_ptr<c10d::Work>;
using BackendHandle = c10::intrusive_ptr<c10d::Backend>;

void check_tensor(const at::Tensor& tensor) {
  check_covered_in_capture("collectives");
  TORCH_CHECK_VALUE(is_simulated(tensor) && tensor.layout() == at::kStrided, "Tensors must be CUDA and dense");
  TORCH_CHECK_VALUE(tensor.is_contiguous(), "Tensors must be contiguous");
}

at::Tensor host(const at::Tensor& tensor) {
  check_tensor(tensor);
  return host_alias(tensor);
}

Tensors hosts(const Tensors& tensors) {
  Tensors all;
  for (const at::Tensor& tensor : tensors) all.push_back(host(tensor));
  return all;
}

std::vector<Tensors> hosts(const std::vector<Tensors>& lists) {
  std::vector<Tensors> all;
  for (const Tensors& tensors : lists) all.push_back(hosts(tensors));
  return all;
}

// For operations that only move data: every type travels, as bytes where the CPU's backend does not know it.
at::Tensor as_bytes(const at::Tensor& tensor) {
  return tensor.view({-1}).view(at::kByte);
}

// The same for what is split along its first dimension.
at::Tensor as_rows_of_bytes(const at::Tensor& tensor) {
  return tensor.numel() == 0 ? tensor : tensor.view({tensor.size(0), -1}).view(at::kByte);
}

Tensors as_bytes(const Tensors& tensors) {
  Tensors all;
  for (const at::Tensor& tensor : tensors) all.push_back(as_bytes(tensor));
  return all;
}

// A collective, which is complete when the call that started it returns.
class FinishedWork final : public c10d::Work {
 public:
  FinishedWork(int rank, c10d::OpType type, Tensors outputs)
      : Work(rank, type), outputs_(std::move(outputs)), future_(make_future(outputs_)) {
    finish();
  }
  bool wait(std::chrono::milliseconds) override { return true; }
  void synchronize() override {}
  void blockCurrentStream() override {}
  Tensors result() override { return outputs_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }

 private:
  static c10::intrusive_ptr<c10::ivalue::Future> make_future(const Tensors& outputs) {
    std::vector<c10::Device> devices;
    if (!outputs.empty()) devices.push_back(outputs.front().device());
    auto future =
        c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()), std::move(devices));
    future->markCompleted(c10::IValue(outputs));
    return future;
  }

  Tensors outputs_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

// Sends and receives: they end when the peer has done its part. The aliases must live until then.
class PendingWork final : public c10d::Work {
 public:
  PendingWork(int rank, c10d::OpType type, std::vector<WorkHandle> parts)
      : Work(rank, type), parts_(std::move(parts)) {}
  bool isCompleted() override {
    for (const WorkHandle& part : parts_) {
      if (!part->isCompleted()) return false;
    }
    return true;
  }
  bool wait(std::chrono::milliseconds timeout) override {
    for (const WorkHandle& part : parts_) part->wait(timeout);
    tell_work_ended(this);
    return true;
  }
  void synchronize() override { wait(kNoTimeout); }
  int sourceRank() const override { return parts_.front()->sourceRank(); }
  void abort() override {
    for (const WorkHandle& part : parts_) part->abort();
  }

 private:
  std::vector<WorkHandle> parts_;
};

// The factor of an operand before it is summed: that of ReduceOp.PREMUL_SUM.
at::Tensor premultiplied(const at::Tensor& operand, const ReduceOp& asked) {
  TORCH_CHECK(operand.is_floating_point(), "PreMulSum Data type must be half, float, bfloat16 or double");
  const auto* factor = static_cast<const c10d::NCCLPreMulSumSupplement*>(asked.supplement_.get());
  TORCH_INTERNAL_ASSERT(factor != nullptr);
  if (!factor->tensor_factor.defined()) return operand * factor->double_factor;
  TORCH_CHECK(factor->tensor_factor.scalar_type() == operand.scalar_type(),
              "PreMulSum factor type must match input data type");
  return operand * host_alias(factor->tensor_factor).reshape(at::IntArrayRef{});
}

// How a reduction is put to the CPU's backend, and what is to be done with its operand before and its result after.
class Reduction {
 public:
  explicit Reduction(const ReduceOp& asked) : asked_(asked), op_(asked) {
    if (asked_ == ReduceOp::AVG || asked_ == ReduceOp::PREMUL_SUM) op_ = ReduceOp(ReduceOp::SUM);
  }

  const ReduceOp& op() const { return op_; }

  void prepare(at::Tensor& operand) {
    if (asked_ == ReduceOp::PREMUL_SUM) operand.copy_(premultiplied(operand, asked_));
  }

  void finish(at::Tensor& result, int size) {
    if (!(asked_ == ReduceOp::AVG)) return;
    if (result.is_floating_point() || result.is_complex()) {
      result.div_(size);
    } else {
      result.div_(size, "trunc");
    }
  }

 private:
  ReduceOp asked_;
  ReduceOp op_;
};

// NCCL sums booleans as a logical or; the CPU's backend knows bytes.
at::Tensor reducible(const at::Tensor& tensor, ReduceOp& op) {
  if (tensor.scalar_type() != at::kBool) return tensor;
  if (op == ReduceOp::SUM) op = ReduceOp(ReduceOp::MAX);
  if (op == ReduceOp::PRODUCT) op = ReduceOp(ReduceOp::MIN);
  return as_bytes(tensor);
}

class SimulatedBackend final : public c10d::Backend {
 public:
  SimulatedBackend(BackendHandle cpu, std::string name)
      : Backend(cpu->getRank(), cpu->getSize()), cpu_(std::move(cpu)), name_(std::move(name)) {}

  const std::string getBackendName() const override { return name_; }
  bool supportsCoalescing() const override { return true; }
  void setSequenceNumberForGroup() override { cpu_->setSequenceNumberForGroup(); }
  std::uint64_t getSequenceNumberForGroup() override { return cpu_->getSequenceNumberForGroup(); }
  void setTimeout(std::chrono::milliseconds timeout) override { cpu_->setTimeout(timeout); }
  void abort() override { cpu_->abort(); }
  void shutdown() override { cpu_->shutdown(); }

  WorkHandle broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
    Tensors data = as_bytes(hosts(tensors));
    return finish(cpu_->broadcast(data, options), c10d::OpType::BROADCAST, tensors);
  }

  WorkHandle allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    for (at::Tensor& tensor : tensors) reduce_everywhere(tensor, options);
    return finished(c10d::OpType::ALLREDUCE, tensors);
  }

  WorkHandle allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) override {
    for (at::Tensor& tensor : tensors) reduce_everywhere(tensor, options);
    return finished(c10d::OpType::ALLREDUCE_COALESCED, tensors);
  }

  WorkHandle reduce(Tensors& tensors, const c10d::ReduceOptions& options) override {
    Reduction reduction(options.reduceOp);
    c10d::ReduceOptions on_cpu = options;
    on_cpu.reduceOp = reduction.op();
    at::Tensor data = host(tensors.at(0));
    if (options.rootRank != rank_) data = data.clone();  // the CPU's backend may use it for what it adds up
    reduction.prepare(data);
    Tensors operands{reducible(data, on_cpu.reduceOp)};
    cpu_->reduce(operands, on_cpu)->wait();
    if (options.rootRank == rank_) reduction.finish(data, size_);
    return finished(c10d::OpType::REDUCE, tensors);
  }

  WorkHandle allgather(std::vector<Tensors>& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override {
    std::vector<Tensors> received;
    for (const Tensors& list : hosts(outputs)) received.push_back(as_bytes(list));
    Tensors sent = as_bytes(hosts(inputs));
    return finish(cpu_->allgather(received, sent, options), c10d::OpType::ALLGATHER, outputs.at(0));
  }

  WorkHandle _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) override {
    gather_everywhere(output, input, options);
    return finished(c10d::OpType::_ALLGATHER_BASE, {output});
  }

  WorkHandle allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                                 const c10d::AllgatherOptions& options) override {
    for (std::size_t index = 0; index < inputs.size(); ++index) {
      std::vector<Tensors> received{Tensors{}};
      for (const Tensors& of_rank : outputs) received[0].push_back(as_bytes(host(of_rank.at(index))));
      Tensors sent{as_bytes(host(inputs[index]))};
      cpu_->allgather(received, sent, options)->wait();
    }
    return finished(c10d::OpType::ALLGATHER_COALESCED, outputs.at(0));
  }

  WorkHandle allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                             const c10d::AllgatherOptions& options) override {
    for (std::size_t index = 0; index < inputs.size(); ++index) {
      gather_everywhere(outputs.at(index), inputs[index], options);
    }
    return finished(c10d::OpType::COALESCED, outputs);
  }

  WorkHandle gather(std::vector<Tensors>& outputs, Tensors& inputs, const c10d::GatherOptions& options) override {
    std::vector<Tensors> received;
    for (const Tensors& list : hosts(outputs)) received.push_back(as_bytes(list));
    Tensors sent = as_bytes(hosts(inputs));
    return finish(cpu_->gather(received, sent, options), c10d::OpType::GATHER,
                  outputs.empty() ? Tensors{} : outputs[0]);
  }

  WorkHandle scatter(Tensors& outputs, std::vector<Tensors>& inputs, const c10d::ScatterOptions& options) override {
    std::vector<Tensors> sent;
    for (const Tensors& list : hosts(inputs)) sent.push_back(as_bytes(list));
    Tensors received = as_bytes(hosts(outputs));
    return finish(cpu_->scatter(received, sent, options), c10d::OpType::SCATTER, outputs);
  }

  WorkHandle reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                            const c10d::ReduceScatterOptions& options) override {
    Reduction reduction(options.reduceOp);
    c10d::AllreduceOptions all;
    all.reduceOp = reduction.op();
    all.timeout = options.timeout;
    // The CPU's backend lacks this one for some types: reduce copies of all parts, and keep this rank's.
    Tensors parts;
    for (const at::Tensor& part : hosts(inputs.at(0))) {
      parts.push_back(part.clone());
      reduction.prepare(parts.back());
      ReduceOp op = all.reduceOp;
      c10d::AllreduceOptions one = all;
      Tensors operand{reducible(parts.back(), op)};
      one.reduceOp = op;
      cpu_->allreduce(operand, one)->wait();
    }
    at::Tensor result = host(outputs.at(0));
    result.copy_(parts.at(static_cast<std::size_t>(rank_)).view_as(result));
    reduction.finish(result, size_);
    return finished(c10d::OpType::REDUCE_SCATTER, outputs);
  }

  WorkHandle _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                  const c10d::ReduceScatterOptions& options) override {
    scatter_reduced(output, input, options);
    return finished(c10d::OpType::_REDUCE_SCATTER_BASE, {output});
  }

  WorkHandle reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                             const c10d::ReduceScatterOptions& options) override {
    for (std::size_t index = 0; index < inputs.size(); ++index) {
      scatter_reduced(outputs.at(index), inputs[index], options);
    }
    return finished(c10d::OpType::COALESCED, outputs);
  }

  WorkHandle alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>& output_splits,
                           std::vector<std::int64_t>& input_splits, const c10d::AllToAllOptions& options) override {
    at::Tensor received = as_rows_of_bytes(host(output));
    at::Tensor sent = as_rows_of_bytes(host(input));
    return finish(cpu_->alltoall_base(received, sent, output_splits, input_splits, options),
                  c10d::OpType::ALLTOALL_BASE, {output});
  }

  WorkHandle alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) override {
    const Tensors received = as_bytes(hosts(outputs));
    const Tensors sent = as_bytes(hosts(inputs));
    std::vector<std::int64_t> output_splits, input_splits;
    std::int64_t total = 0;
    Tensors flat;
    for (const at::Tensor& part : sent) {
      flat.push_back(part.reshape(-1));
      input_splits.push_back(part.numel());
    }
    for (const at::Tensor& part : received) {
      output_splits.push_back(part.numel());
      total += part.numel();
    }
    at::Tensor all_sent = at::cat(flat);
    at::Tensor all_received = at::empty({total}, all_sent.options());
    cpu_->alltoall_base(all_received, all_sent, output_splits, input_splits, options)->wait();
    std::int64_t start = 0;
    for (const at::Tensor& part : received) {
      part.copy_(all_received.narrow(0, start, part.numel()).view_as(part));
      start += part.numel();
    }
    return finished(c10d::OpType::ALLTOALL, outputs);
  }

  WorkHandle barrier(const c10d::BarrierOptions& options) override {
    return finish(cpu_->barrier(options), c10d::OpType::BARRIER, {});
  }

  WorkHandle send(Tensors& tensors, int destination, int tag) override {
    Tensors data = as_bytes(hosts(tensors));
    return pending(cpu_->send(data, destination, tag), c10d::OpType::SEND);
  }

  WorkHandle recv(Tensors& tensors, int source, int tag) override {
    Tensors data = as_bytes(hosts(tensors));
    return pending(cpu_->recv(data, source, tag), c10d::OpType::RECV);
  }

  void startCoalescing() override { coalescing_ = true; }

  WorkHandle endCoalescing() override {
    coalescing_ = false;
    std::vector<WorkHandle> parts = std::exchange(coalesced_, {});
    if (parts.empty()) return finished(c10d::OpType::COALESCED, {});
    return c10::make_intrusive<PendingWork>(rank_, c10d::OpType::COALESCED, std::move(parts));
  }

 private:
  WorkHandle finished(c10d::OpType type, Tensors outputs) const {
    return c10::make_intrusive<FinishedWork>(rank_, type, std::move(outputs));
  }

  WorkHandle finish(const WorkHandle& work, c10d::OpType type, Tensors outputs) const {
    work->wait();
    return finished(type, std::move(outputs));
  }

  WorkHandle pending(const WorkHandle& work, c10d::OpType type) {
    if (coalescing_) coalesced_.push_back(work);
    return c10::make_intrusive<PendingWork>(rank_, type, std::vector<WorkHandle>{work});
  }

  void reduce_everywhere(at::Tensor& tensor, const c10d::AllreduceOptions& options) {
    Reduction reduction(options.reduceOp);
    c10d::AllreduceOptions on_cpu = options;
    on_cpu.reduceOp = reduction.op();
    at::Tensor data = host(tensor);
    reduction.prepare(data);
    Tensors operands{reducible(data, on_cpu.reduceOp)};
    cpu_->allreduce(operands, on_cpu)->wait();
    reduction.finish(data, size_);
  }

  void gather_everywhere(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) {
    TORCH_CHECK_VALUE(output.scalar_type() == input.scalar_type(),
                      "output tensor must have the same type as input tensor");
    TORCH_CHECK_VALUE(input.numel() * size_ == output.numel(),
                      "output tensor size must be equal to world_size times input tensor size");
    at::Tensor received = as_bytes(host(output));
    std::vector<Tensors> parts{Tensors{}};
    const std::int64_t length = received.numel() / size_;
    for (int rank = 0; rank < size_; ++rank) parts[0].push_back(received.narrow(0, rank * length, length));
    Tensors sent{as_bytes(host(input))};
    cpu_->allgather(parts, sent, options)->wait();
  }

  void scatter_reduced(at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions& options) {
    TORCH_CHECK_VALUE(output.scalar_type() == input.scalar_type(),
                      "input tensor must be the same type as the output tensor.");
    TORCH_CHECK_VALUE(input.numel() == output.numel() * size_,
                      "input tensor must be the same size as output size times world size");
    Reduction reduction(options.reduceOp);
    c10d::AllreduceOptions all;
    all.reduceOp = reduction.op();
    all.timeout = options.timeout;
    at::Tensor sum = host(input).view({-1}).clone();
    reduction.prepare(sum);
    Tensors operands{reducible(sum, all.reduceOp)};
    cpu_->allreduce(operands, all)->wait();
    at::Tensor result = host(output);
    result.copy_(sum.narrow(0, rank_ * output.numel(), output.numel()).view_as(result));
    reduction.finish(result, size_);
  }

  BackendHandle cpu_;
  std::string name_;
  bool coalescing_ = false;
  std::vector<WorkHandle> coalesced_;
};

}  // namespace

void wrap_cpu_backend(const std::string& group_name, const std::string& backend_name) {
  const auto group = c10d::resolve_process_group(group_name);
  const BackendHandle cpu = group->getBackend(c10::DeviceType::CPU);
  // Under the type of the CPU's own backend the group would use that one for both.
  group->setBackend(kSimulatedType, c10d::ProcessGroup::BackendType::NCCL,
                    c10::make_intrusive<SimulatedBackend>(cpu, backend_name));
}

}  // namespace devsan::sim

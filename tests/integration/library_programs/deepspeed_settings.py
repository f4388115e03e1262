"""DeepSpeed's ZeRO-3 with settings of where groups of weights are to be, and one group that a line moves or leaves:

    deepspeed_settings.py … ratio kept       of the optimizer a half is on the CPU, the rest on the GPU
    deepspeed_settings.py … ratio moved
    deepspeed_settings.py … states kept      all states are sent to the CPU and fetched again
    deepspeed_settings.py … states away      … and not fetched again, while the model is used
    deepspeed_settings.py … states moved     … fetched, and one group sent back

There is no nvcc here. DeepSpeed's Adam for the CPU is C++ that it compiles on the spot, as for a machine without CUDA. Of
its Adam for the GPU, without which it sends no states away, the one kernel is written in Python; all else is DeepSpeed's.
"""

import os
import sys
import types

import deepspeed
import torch
from deepspeed.ops.op_builder import cpu
from deepspeed.ops.op_builder.builder import OpBuilder
from deepspeed_parts import train_another_model

SETTING, GROUP = sys.argv[-2:]
CONFIG = {
    "train_micro_batch_size_per_gpu": 2,
    "zero_optimization": {"stage": 3, "stage3_param_persistence_threshold": 0, "sub_group_size": 300},
    "zero_allow_untested_optimizer": True,
}


def step_of_adam(chunk, overflow, tensors, rate, beta1, beta2, epsilon, step, decoupled, corrected, decay):
    for gradient, weight, first, second in zip(*tensors):
        first.lerp_(gradient, 1 - beta1)
        second.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        weight.mul_(1 - rate * decay)
        deviation = (second / (1 - beta2**step)).sqrt_().add_(epsilon)
        weight.addcdiv_(first, deviation, value=-rate / (1 - beta1**step))


def make_optimizer(parameters):
    if SETTING == "states":
        OpBuilder._loaded_ops["fused_adam"] = types.SimpleNamespace(multi_tensor_adam=step_of_adam)
        return deepspeed.ops.adam.FusedAdam(parameters)
    CONFIG["zero_optimization"]["offload_optimizer"] = {"device": "cpu", "ratio": 0.5}
    cpu.CPUAdamBuilder().load()
    return deepspeed.ops.adam.DeepSpeedCPUAdam(parameters)


def train(engine, steps):
    for _ in range(steps):
        loss = engine(torch.randn(2, 16, device=engine.device)).square().mean()
        engine.backward(loss)
        engine.step()


def homes(engine):
    return [group.device.type for group in engine.optimizer.fp32_partitioned_groups_flat]


def move(group):
    group.data = group.data.to("cpu" if group.is_cuda else "cuda")


def main():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    deepspeed.init_distributed()
    torch.manual_seed(0)
    model = torch.nn.Sequential(*(torch.nn.Linear(16, 16) for _ in range(4)))
    engine, _, _, _ = deepspeed.initialize(model=model, optimizer=make_optimizer(model.parameters()), config=CONFIG)
    train(engine, 3)
    if SETTING == "states":
        engine.offload_states()
        print("away", homes(engine), flush=True)
        if GROUP != "away":
            engine.reload_states()
    else:
        print("groups", homes(engine), flush=True)
    if GROUP == "moved":
        move(engine.optimizer.fp32_partitioned_groups_flat[0])
    if GROUP == "kept":
        train(engine, 3)
    else:
        train_another_model(engine.device)
    print("trained", flush=True)
    torch.distributed.destroy_process_group()


main()

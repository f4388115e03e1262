"""DeepSpeed's ZeRO-3 with what it keeps on disk (`device: nvme`), and one group of weights that a line moves or leaves:

    deepspeed_nvme.py FOLDER optimizer kept       the optimizer is on disk, but for groups below 1 MiB, which are in memory
    deepspeed_nvme.py FOLDER optimizer pipelined  … and the next group is read while one is worked on
    deepspeed_nvme.py FOLDER param kept           parameters are on disk, the optimizer is on the CPU
    deepspeed_nvme.py FOLDER both kept
    deepspeed_nvme.py FOLDER optimizer read       after three steps, a line reads a group from disk and leaves it in memory
    deepspeed_nvme.py FOLDER optimizer moved      … and leaves it on the GPU
    deepspeed_nvme.py FOLDER optimizer small      … takes a group that is in memory to the GPU
    deepspeed_nvme.py FOLDER param memory         parameters are in memory, as max_in_cpu allows it; a line moves a group

There is no nvcc here. What reads and writes is DeepSpeed's own C++, which it compiles on the spot, by its builders for a
machine without CUDA: those for one with it leave out the library that the C++ calls (libaio).
"""

import os
import pathlib
import sys

import deepspeed
import torch
from deepspeed.ops.op_builder import cpu
from deepspeed_parts import train_another_model

FOLDER, SETTING, GROUP = sys.argv[-3:]
SIZE = 1024  # of two ranks, each has 2 MiB of a layer's weights: DeepSpeed keeps what is below 1 MiB in memory
ON_DISK = {"device": "nvme", "nvme_path": FOLDER}
PARAM = {"buffer_count": 4, "buffer_size": SIZE * SIZE, "max_in_cpu": 10 * SIZE * SIZE if GROUP == "memory" else 0}
PIPELINED = {"pipeline_read": True, "pipeline_write": True, "buffer_count": 12}


def config():
    optimizer = ON_DISK if SETTING != "param" else {"device": "cpu"}
    zero = {"stage": 3, "stage3_param_persistence_threshold": 0, "sub_group_size": SIZE,
            "offload_optimizer": optimizer | (PIPELINED if GROUP == "pipelined" else {})}
    if SETTING != "optimizer":
        zero["offload_param"] = ON_DISK | PARAM
    return {"train_micro_batch_size_per_gpu": 2, "zero_optimization": zero,
            "optimizer": {"type": "Adam", "params": {"lr": 1e-3}}}


def train(engine, steps):
    for step in range(steps):
        generator = torch.Generator().manual_seed(step)
        batch = torch.randn(2, SIZE, generator=generator).to(engine.device)
        loss = engine(batch).square().mean()
        engine.backward(loss)
        engine.step()
        if os.environ["RANK"] == "0":
            print("loss", loss.item(), flush=True)


def put_elsewhere(optimizer):
    if GROUP == "memory":
        groups = optimizer.fp16_partitioned_groups_flat
        groups[0] = groups[0].to("cuda")
        return
    group = optimizer.fp32_partitioned_groups_flat[1 if GROUP == "small" else 0]
    if GROUP != "small":
        optimizer.optimizer_swapper.swap_in_optimizer_state(group)
    if GROUP != "read":
        group.data = group.data.to("cuda")


def main():
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    deepspeed.init_distributed()
    cpu.CPUAdamBuilder().load()
    cpu.AsyncIOBuilder().load()
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(SIZE, SIZE), torch.nn.ReLU(), torch.nn.Linear(SIZE, SIZE),
                                torch.nn.Linear(SIZE, 4))
    engine, _, _, _ = deepspeed.initialize(model=model, config=config())
    train(engine, 3)
    if os.environ["RANK"] == "0":
        print("groups", [group.numel() for group in engine.optimizer.fp32_partitioned_groups_flat], flush=True)
        print("folders", *sorted({file.parent.parent.name for file in pathlib.Path(FOLDER).rglob("*.swp")}), flush=True)
    if GROUP not in ("kept", "pipelined"):
        put_elsewhere(engine.optimizer)
        train_another_model(engine.device)
    print("trained", flush=True)
    torch.distributed.destroy_process_group()


main()

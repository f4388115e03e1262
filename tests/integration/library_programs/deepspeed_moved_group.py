"""DeepSpeed's ZeRO-3 with its optimizer offloaded to the CPU, on two ranks, one of which takes a group back to its GPU.

    deepspeed_moved_group.py alone     moves the weights: their gradient stays, and the optimizer refuses them
    deepspeed_moved_group.py whole     moves both: the training goes on
"""

import os
import sys

import deepspeed
import torch

RANK = int(os.environ["RANK"])
CONFIG = {
    "train_micro_batch_size_per_gpu": 2,
    "zero_optimization": {"stage": 3, "stage3_param_persistence_threshold": 10, "offload_optimizer": {"device": "cpu"}},
    # torch's own AdamW: DeepSpeed's optimizers are C++ that it would compile on the spot.
    "zero_allow_untested_optimizer": True, "zero_force_ds_cpu_optimizer": False,
}


def keep_on_gpu(group, whole):
    group.data = group.data.to("cuda")
    if whole:
        group.grad = group.grad.to("cuda")


def train(engine, steps):
    for step in range(steps):
        loss = engine(torch.randn(2, 16, device=engine.device)).square().mean()
        engine.backward(loss)
        engine.step()


def main():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    deepspeed.init_distributed()
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    engine, _, _, _ = deepspeed.initialize(model=model, optimizer=torch.optim.AdamW(model.parameters()), config=CONFIG)
    if RANK == 1:
        keep_on_gpu(engine.optimizer.fp32_partitioned_groups_flat[0], sys.argv[1] == "whole")
    train(engine, 3)
    print("trained", flush=True)
    torch.distributed.destroy_process_group()


main()

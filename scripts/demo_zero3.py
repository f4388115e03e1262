#!/usr/bin/env python3
"""Trains a small model with DeepSpeed's ZeRO stage 3, optimizer and parameters offloaded to the CPU, in half precision.

With deepspeed 0.14.2 this is the run of DeepSpeed's issues 5422, 5538, 5585 and 5634: the loss scale starts far too
high, every step overflows and is skipped until it has come down, and the first step that is not skipped fails.

    devsan run --sim 2 -- python scripts/demo_zero3.py             stops at step 17, counted from 0
    devsan run --sim 2 -- python scripts/demo_zero3.py --fixed     passes 20 steps
"""

import argparse
import os
import sys

import demo_compat
import torch

STEPS = 20
BATCH = 4
# The largest gradient of this model on this batch is about 1.4. Times the loss scale it must stay under float16's
# 65504, which it does from 2**15 down: at one halving a step, 2**32 takes 17 steps that overflow and are skipped.
TARGET_SIZE = 7.0
INITIAL_SCALE_POWER = 32

CONFIG = {
    "train_micro_batch_size_per_gpu": BATCH,
    "gradient_clipping": 1.0,
    # torch's own AdamW: DeepSpeed's CPUAdam is C++ that it would compile on the spot. Neither is part of the bug.
    "zero_allow_untested_optimizer": True,
    "zero_force_ds_cpu_optimizer": False,
    "fp16": {"enabled": True, "initial_scale_power": INITIAL_SCALE_POWER, "hysteresis": 1},
    "zero_optimization": {
        "stage": 3,
        "offload_optimizer": {"device": "cpu"},
        "offload_param": {"device": "cpu"},
    },
}


class Regressor(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = torch.nn.Linear(32, 64)
        self.output = torch.nn.Linear(64, 8)

    def forward(self, inputs, targets):
        outputs = self.output(torch.relu(self.hidden(inputs)))
        return torch.nn.functional.mse_loss(outputs.float(), targets.float())


def apply_upstream_fix():
    """The fix: the norm of offloaded gradients goes back to the CPU, where the gradients are (DeepSpeed pull request
    5504; release 0.14.3 had gone back to a norm that is a Python number, pull request 5461)."""
    from deepspeed.runtime.zero.stage3 import DeepSpeedZeroOptimizer_Stage3 as Optimizer

    norm_on_accelerator = Optimizer.complete_grad_norm_calculation_for_cpu_offload

    def norm_on_cpu(self, params):
        return norm_on_accelerator(self, params).cpu()

    Optimizer.complete_grad_norm_calculation_for_cpu_offload = norm_on_cpu


def single_process_environment():
    """What a launcher sets; torchrun's own values stay."""
    for name, value in {
        "RANK": "0",
        "LOCAL_RANK": "0",
        "WORLD_SIZE": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "29533",
    }.items():
        os.environ.setdefault(name, value)


def make_engine(deepspeed):
    model = Regressor()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    engine, _, _, _ = deepspeed.initialize(model=model, optimizer=optimizer, config=CONFIG)
    return engine


def make_batch(device):
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(BATCH, 32, generator=generator)
    targets = TARGET_SIZE * torch.randn(BATCH, 8, generator=generator)
    return inputs.to(device, torch.half), targets.to(device, torch.half)


def train(engine):
    inputs, targets = make_batch(engine.device)
    for step in range(STEPS):
        scale = int(engine.optimizer.loss_scale)
        loss = engine(inputs, targets)
        engine.backward(loss)
        outcome = "failed"
        try:
            engine.step()
            outcome = "skipped, gradients overflowed" if engine.optimizer.overflow else "parameters updated"
        finally:
            power = scale.bit_length() - 1
            print(f"step {step:2d}  loss {loss.item():7.4f}  scale 2^{power:<2d}  {outcome}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fixed", action="store_true", help="apply upstream's fix from outside, and pass all steps")
    options = parser.parse_args()

    single_process_environment()
    deepspeed = demo_compat.import_deepspeed()
    if options.fixed:
        apply_upstream_fix()
    torch.manual_seed(0)
    deepspeed.init_distributed()
    train(make_engine(deepspeed))
    print(f"{STEPS} steps passed")


if __name__ == "__main__":
    sys.exit(main())

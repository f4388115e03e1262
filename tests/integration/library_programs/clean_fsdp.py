"""torch's FSDP: `fully_shard` or `wrapped` (FullyShardedDataParallel), then `offloaded` to the host, `flat` or not."""

import sys

import torch
from clean_parts import LOCAL_RANK, Classifier, train
from torch.distributed.fsdp import (CPUOffload, CPUOffloadPolicy, FullyShardedDataParallel, MixedPrecisionPolicy,
                                    fully_shard)
from torch.distributed.fsdp.wrap import ModuleWrapPolicy

WORDS = sys.argv[3:]
OFFLOADED = "offloaded" in WORDS


def shard(model):
    """What is offloaded is brought to the device by FSDP itself; the rest is moved there first."""
    settings = {"mp_policy": MixedPrecisionPolicy(param_dtype=torch.bfloat16)}
    if OFFLOADED:
        settings["offload_policy"] = CPUOffloadPolicy()
    else:
        model.cuda()
    for layer in model.layers:
        fully_shard(layer, **settings)
    fully_shard(model, **settings)
    if OFFLOADED:
        model.positions = model.positions.cuda()
    return model


def wrap(model):
    return FullyShardedDataParallel(
        model, auto_wrap_policy=ModuleWrapPolicy({torch.nn.TransformerEncoderLayer}), device_id=LOCAL_RANK,
        cpu_offload=CPUOffload(offload_params=OFFLOADED), use_orig_params="flat" not in WORDS)


def main():
    torch.cuda.set_device(LOCAL_RANK)
    torch.distributed.init_process_group("cpu:gloo,cuda:nccl")
    torch.manual_seed(0)
    model = shard(Classifier()) if "fully_shard" in WORDS else wrap(Classifier())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    train(model, optimizer, torch.device("cuda", LOCAL_RANK))
    torch.distributed.destroy_process_group()


main()

"""An epoch of long sequences by DeepSpeed: ZeRO-3 with parameters and optimizer on the CPU, gradients of several batches
in each step, and each sequence in parts on the ranks of torchrun (Ulysses). What it does with the results of a batch is
said by its last argument:

    sound      prints their loss at the end of the epoch, as a number
    sum        adds up their losses, with their graphs
    outputs    keeps them until the end of the epoch, with the graph of what is to be logged
    saved      the same, where what a backward needs waits on the CPU
    hook       keeps copies on the CPU of what a hook of the last block is given
"""

import contextlib
import os
import sys

import demo_compat
import torch

deepspeed = demo_compat.import_deepspeed()
from deepspeed.sequence.layer import DistributedAttention  # noqa: E402

KEPT = sys.argv[-1]
RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
LENGTH, BATCH, WIDTH, HEADS, CLASSES = 256, 2, 32, 4, 16
ACCUMULATED, BATCHES = 4, 120
CONFIG = {
    "train_micro_batch_size_per_gpu": BATCH, "gradient_accumulation_steps": ACCUMULATED, "gradient_clipping": 1.0,
    "bf16": {"enabled": True},
    "zero_optimization": {
        "stage": 3, "stage3_param_persistence_threshold": 100,
        "offload_optimizer": {"device": "cpu", "pin_memory": True},
        "offload_param": {"device": "cpu", "pin_memory": True},
    },
    # torch's own AdamW: DeepSpeed's optimizers are C++ that it would compile on the spot.
    "zero_allow_untested_optimizer": True, "zero_force_ds_cpu_optimizer": False,
}


class OneSequence:
    """What DeepSpeed asks of how ranks work together, where all of them work on one sequence at a time."""

    def __init__(self):
        self.all = torch.distributed.group.WORLD
        self.alone = [torch.distributed.new_group([rank]) for rank in range(WORLD)][RANK]

    def get_data_parallel_group(self):
        return self.alone

    def get_data_parallel_world_size(self):
        return 1

    def get_data_parallel_rank(self):
        return 0

    get_model_parallel_group = get_data_parallel_group
    get_model_parallel_world_size = get_data_parallel_world_size
    get_model_parallel_rank = get_data_parallel_rank

    def get_sequence_parallel_group(self):
        return self.all

    def get_sequence_parallel_world_size(self):
        return WORLD

    def get_sequence_parallel_rank(self):
        return RANK

    get_sequence_data_parallel_group = get_sequence_parallel_group
    get_sequence_data_parallel_world_size = get_sequence_parallel_world_size
    get_sequence_data_parallel_rank = get_sequence_parallel_rank


class Attention(torch.nn.Module):
    def forward(self, query, key, value):
        query, key, value = (part.permute(1, 2, 0, 3) for part in (query, key, value))
        mixed = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return mixed.permute(2, 0, 1, 3).contiguous()


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.parts = torch.nn.Linear(WIDTH, 3 * WIDTH)
        self.attention = DistributedAttention(Attention(), torch.distributed.group.WORLD)
        self.out = torch.nn.Linear(WIDTH, WIDTH)

    def forward(self, hidden):
        parts = self.parts(self.norm(hidden)).view(*hidden.shape[:2], 3, HEADS, WIDTH // HEADS).unbind(2)
        return hidden + self.out(self.attention(*parts).reshape(hidden.shape))


class Model(torch.nn.Module):
    """Of a sequence's tokens this rank has its part."""

    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(CLASSES, WIDTH)
        self.blocks = torch.nn.ModuleList(Block() for _ in range(2))
        self.head = torch.nn.Linear(WIDTH, CLASSES)

    def forward(self, tokens, targets):
        hidden = self.embedding(tokens)
        for block in self.blocks:
            hidden = block(hidden)
        scores = self.head(hidden).float()
        loss = torch.nn.functional.cross_entropy(scores.flatten(0, 1), targets.flatten())
        return {"loss": loss, "entropy": torch.special.entr(scores.softmax(-1)).sum(-1).mean()}


def make_batch(device):
    tokens = torch.randint(CLASSES, (LENGTH + 1, BATCH))
    mine = slice(RANK * LENGTH // WORLD, (RANK + 1) * LENGTH // WORLD)
    return tokens[:-1][mine].to(device), tokens[1:][mine].to(device)


def keep_on_cpu():
    return torch.autograd.graph.save_on_cpu() if KEPT == "saved" else contextlib.nullcontext()


def train_epoch(engine):
    """The mean of the losses."""
    total, outputs = 0.0, []
    for _ in range(BATCHES):
        with keep_on_cpu():
            result = engine(*make_batch(engine.device))
        engine.backward(result["loss"])
        engine.step()
        if KEPT == "sum":
            total = total + result["loss"]
        elif KEPT in ("outputs", "saved"):
            outputs.append(result)
        else:
            total += result["loss"].item()
    return (float(total) + sum(one["loss"].item() for one in outputs)) / BATCHES


def main():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    deepspeed.init_distributed()
    torch.manual_seed(0)
    model = Model()
    engine, _, _, _ = deepspeed.initialize(model=model, optimizer=torch.optim.AdamW(model.parameters()), config=CONFIG,
                                           mpu=OneSequence())
    seen = []
    if KEPT == "hook":
        model.blocks[-1].register_forward_hook(lambda block, args, out: seen.append(out.detach().float().cpu()))
    print(f"mean loss {train_epoch(engine)}", flush=True)
    torch.distributed.destroy_process_group()


main()

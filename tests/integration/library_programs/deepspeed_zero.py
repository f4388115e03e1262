"""DeepSpeed's ZeRO stages on the ranks of torchrun, whose numbers are those of a training without it on the CPU.

    deepspeed_zero.py cuda FOLDER SCENARIO…     by DeepSpeed
    deepspeed_zero.py cpu  FOLDER SCENARIO…     without, the same numbers for every scenario

A scenario is words: stage, dtype, what is offloaded to the CPU and whether it is pinned, `resume`, `long`.
"""

import gc
import importlib.metadata
import os
import pathlib
import sys

import torch
from library_report import report

DEVICE, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
STEPS, LONG, BATCH = 5, 40, 4
RANK, WORLD = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))


class Classifier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(16, 24)
        self.layers = torch.nn.ModuleList(
            torch.nn.TransformerEncoderLayer(24, 4, 48, dropout=0.0, batch_first=True) for _ in range(2))
        self.head = torch.nn.Linear(24, 5)

    def forward(self, tokens, targets):
        hidden = self.embedding(tokens)
        for layer in self.layers:
            hidden = layer(hidden)
        return torch.nn.functional.cross_entropy(self.head(hidden.mean(1)).float(), targets)


def make_model():
    torch.manual_seed(0)
    return Classifier()


def make_batches(words):
    """Batches of all ranks together: rank r of n takes the r-th of their n parts."""
    generator = torch.Generator().manual_seed(1)
    steps = LONG if "long" in words else STEPS
    return [(torch.randint(16, (BATCH, 6), generator=generator), torch.randint(5, (BATCH,), generator=generator))
            for _ in range(steps)]


def train_plain(words):
    model = make_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for tokens, targets in make_batches(words):
        optimizer.zero_grad()
        loss = model(tokens, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


def configuration(words):
    zero = {"stage": int(words[0])}
    if zero["stage"] == 3:
        zero["stage3_param_persistence_threshold"] = 100  # else so small a model is never partitioned
    if "optimizer" in words:
        zero["offload_optimizer"] = {"device": "cpu", "pin_memory": "pinned" in words}
    if "parameters" in words:
        zero["offload_param"] = {"device": "cpu", "pin_memory": "pinned" in words}
    # torch's own AdamW: DeepSpeed's optimizers are C++ that it would compile on the spot.
    settings = {"train_micro_batch_size_per_gpu": BATCH // WORLD, "gradient_clipping": 1.0, "zero_optimization": zero,
                "zero_allow_untested_optimizer": True, "zero_force_ds_cpu_optimizer": False}
    if "bf16" in words:
        settings["bf16"] = {"enabled": True}
    if "fp16" in words:
        settings["fp16"] = {"enabled": True, "initial_scale_power": 8}
    return settings


def make_engine(config):
    model = make_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    engine, _, _, _ = deepspeed.initialize(model=model, optimizer=optimizer, config=config)
    assert engine.device == torch.device("cuda", int(os.environ["LOCAL_RANK"])), engine.device
    return engine


def mean_over_ranks(value):
    value = value.detach().clone()
    torch.distributed.all_reduce(value, op=torch.distributed.ReduceOp.AVG)
    return value.item()


def train_on(engine, batches):
    mine = slice(RANK * BATCH // WORLD, (RANK + 1) * BATCH // WORLD)
    losses = []
    for tokens, targets in batches:
        loss = engine(tokens[mine].to(engine.device), targets[mine].to(engine.device))
        engine.backward(loss)
        engine.step()
        losses.append(mean_over_ranks(loss))
    return losses


def train(words):
    """All steps by one engine, or with a checkpoint after two of them, which another engine loads."""
    config, batches, losses = configuration(words), make_batches(words), []
    engine = make_engine(config)
    if "resume" in words:
        folder = str(FOLDER / "-".join(words))
        losses += train_on(engine, batches[:2])
        engine.save_checkpoint(folder)
        engine.destroy()
        engine = make_engine(config)
        path, _ = engine.load_checkpoint(folder)
        assert path
    losses += train_on(engine, batches[len(losses):])
    engine.destroy()
    del engine
    gc.collect()
    return losses


def import_deepspeed():
    if importlib.metadata.version("deepspeed") == "0.14.2":
        import demo_compat

        return demo_compat.import_deepspeed()
    import deepspeed

    return deepspeed


SCENARIOS = sys.argv[3:]
if DEVICE == "cpu":
    report({scenario: lambda words=scenario.split(): train_plain(words) for scenario in SCENARIOS})
else:
    deepspeed = import_deepspeed()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    deepspeed.init_distributed()
    report({scenario: lambda words=scenario.split(): train(words) for scenario in SCENARIOS})
    torch.distributed.destroy_process_group()

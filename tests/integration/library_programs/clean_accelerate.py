"""accelerate: `prepared` by Accelerator, `sharded` by it over ranks, `dispatched` over two devices, or `offloaded`, to
`disk` or `partly`.

Of what is offloaded nothing is trained but a head of the program's own, on what the frozen rest computes.
"""

import sys

import accelerate
import torch
from clean_parts import STEPS, Classifier, make_batches, train
from library_report import small_llama, token_rows

FOLDER, WAY = sys.argv[2:4]
LAYERS = {"model.embed_tokens": 0, "model.layers.0": 0, "model.layers.1": 1, "model.norm": 1, "model.rotary_emb": 1,
          "lm_head": 1}


def prepared(**settings):
    accelerator = accelerate.Accelerator(mixed_precision="bf16", **settings)
    model = Classifier()
    model, optimizer = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), lr=1e-3))
    train(model, optimizer, accelerator.device)
    accelerator.save_state(FOLDER)


def sharded():
    plugin = accelerate.FullyShardedDataParallelPlugin(
        fsdp_version=2, cpu_offload=True, reshard_after_forward=True, auto_wrap_policy="transformer_based_wrap",
        transformer_cls_names_to_wrap=["TransformerEncoderLayer"])
    both = accelerate.utils.InitProcessGroupKwargs(backend="cpu:gloo,cuda:nccl")
    prepared(fsdp_plugin=plugin, kwargs_handlers=[both])


def dispatched():
    model = accelerate.dispatch_model(small_llama(), LAYERS)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    rows = token_rows(STEPS).to("cuda:0")
    for row in rows.split(1):
        optimizer.zero_grad()
        model(input_ids=row, labels=row).loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        total = sum(model(input_ids=row, labels=row).loss.item() for row in rows.split(1))
    print(f"evaluation: {total / STEPS:.3f}")


def put_away(model):
    if WAY == "offloaded":
        return accelerate.cpu_offload(model, execution_device="cuda:0")
    if WAY == "disk":
        return accelerate.disk_offload(model, FOLDER, execution_device="cuda:0")
    layers = {**LAYERS, "model.layers.1": "cpu", "lm_head": "disk"}
    return accelerate.dispatch_model(model, layers, main_device="cuda:0", offload_dir=FOLDER)


def trained_head_on_what_is_put_away():
    backbone = put_away(small_llama().eval().requires_grad_(False))
    head = torch.nn.Linear(64, 5).to("cuda:0")
    optimizer = torch.optim.AdamW(head.parameters(), lr=1e-3)

    def loss_of(row, target):
        with torch.no_grad():
            features = backbone(row.to("cuda:0")).logits.mean(1).to("cuda:0")
        return torch.nn.functional.cross_entropy(head(features), target.to("cuda:0"))

    rows, targets = token_rows(STEPS).split(1), [target[:1] for _, target in make_batches(seed=0)]
    for row, target in zip(rows, targets):
        optimizer.zero_grad()
        loss_of(row, target).backward()
        optimizer.step()
    with torch.no_grad():
        total = sum(loss_of(row, target).item() for row, target in zip(rows, targets))
    print(f"evaluation: {total / STEPS:.3f}")


{"prepared": prepared, "sharded": sharded, "dispatched": dispatched}.get(WAY, trained_head_on_what_is_put_away)()

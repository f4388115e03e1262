"""accelerate: its training loop with and without accumulation, saved states, and a model spread over devices."""

import pathlib
import sys

import accelerate
import torch
from library_report import report, small_gpt2, small_llama, token_rows

DEVICE, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])


def make_accelerator(**settings):
    accelerate.state.AcceleratorState._reset_state(reset_partial_state=True)
    accelerator = accelerate.Accelerator(cpu=DEVICE == "cpu", **settings)
    assert accelerator.device.type == DEVICE, accelerator.device
    return accelerator


def make_parts(accelerator):
    torch.manual_seed(0)
    model = small_gpt2()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=6)
    loader = torch.utils.data.DataLoader(token_rows(24), batch_size=4, shuffle=True,
                                         generator=torch.Generator().manual_seed(4))
    return accelerator.prepare(model, optimizer, loader, schedule)


def train_epoch(accelerator, model, optimizer, loader, schedule):
    losses = []
    for rows in loader:
        with accelerator.accumulate(model):
            loss = model(input_ids=rows, labels=rows).loss
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        losses += accelerator.gather_for_metrics(loss.detach().reshape(1)).tolist()
    return losses


def train(**settings):
    accelerator = make_accelerator(**settings)
    parts = make_parts(accelerator)
    return train_epoch(accelerator, *parts)


def save_and_resume():
    accelerator = make_accelerator()
    parts = make_parts(accelerator)
    train_epoch(accelerator, *parts)
    accelerator.save_state(str(FOLDER / "state"))
    expected = train_epoch(accelerator, *parts)
    accelerator.load_state(str(FOLDER / "state"))
    again = train_epoch(accelerator, *parts)
    assert len(again) == len(expected) == 6
    return {"went on": expected, "loaded": again}


def spread(device_map, **settings):
    """Forward, backward and generation of a Llama whose layers are on several devices."""
    model, rows = small_llama(layers=4).eval(), token_rows(4)
    if DEVICE == "cuda":
        model = accelerate.dispatch_model(model, device_map, **settings)
        rows = rows.to("cuda:0")
    output = model(input_ids=rows, labels=rows)
    numbers = {"logits": output.logits.double().sum().item(), "loss": output.loss.item()}
    if not {"cpu", "disk"} & set(device_map.values()):  # what is offloaded is gone when backward comes
        output.loss.backward()
        numbers["gradient"] = model.model.embed_tokens.weight.grad.norm().item()
    with torch.no_grad():
        numbers["tokens"] = model.generate(rows[:, :4], max_new_tokens=6, do_sample=False, pad_token_id=0,
                                           attention_mask=torch.ones_like(rows[:, :4])).tolist()
    return numbers


def layers_on(embedding, first, second, third, fourth, rest):
    return {"model.embed_tokens": embedding, "model.layers.0": first, "model.layers.1": second,
            "model.layers.2": third, "model.layers.3": fourth, "model.norm": rest, "model.rotary_emb": rest,
            "lm_head": rest}


def spread_by_memory():
    """A map that accelerate infers from the memory that each device may give."""
    model = small_llama(layers=4)
    device_map = accelerate.infer_auto_device_map(
        model, max_memory={0: 90_000, 1: 80_000, "cpu": 10**9}, no_split_module_classes=["LlamaDecoderLayer"])
    assert set(device_map.values()) == {0, 1, "cpu"}, device_map
    return spread(device_map)


def offload_all():
    model, rows = small_llama().eval(), token_rows(4)
    if DEVICE == "cuda":
        model = accelerate.cpu_offload(model, execution_device="cuda:1")
        rows = rows.to("cuda:1")
    with torch.no_grad():
        logits = model(rows).logits
    return logits.double().sum().item()


def load_checkpoint():
    small_llama().save_pretrained(FOLDER / "checkpoint", max_shard_size="40KB")
    with accelerate.init_empty_weights():
        model = type(small_llama())(small_llama().config)
    device_map = {"": "cpu"}
    if DEVICE == "cuda":
        device_map = {"model.embed_tokens": 0, "model.layers.0": 1, "model.layers.1": "disk", "model.norm": 0,
                      "model.rotary_emb": 0, "lm_head": 0}
    model = accelerate.load_checkpoint_and_dispatch(model, str(FOLDER / "checkpoint"), device_map=device_map,
                                                    offload_folder=str(FOLDER / "offloaded"))
    with torch.no_grad():
        return model(token_rows(4).to(0 if DEVICE == "cuda" else "cpu")).logits.double().sum().item()


FOLDER.mkdir(parents=True, exist_ok=True)
# A CPU has no GradScaler: there half precision by float16 is compared with single precision.
FP16 = {"mixed_precision": "fp16"} if DEVICE == "cuda" else {}
SCENARIOS = {
    "plain": train,
    "accumulation": lambda: train(gradient_accumulation_steps=3),
    "bf16": lambda: train(mixed_precision="bf16"),
    "fp16": lambda: train(**FP16),
    "resume": save_and_resume,
    "two devices": lambda: spread(layers_on(0, 0, 0, 1, 1, 1)),
    "back and forth": lambda: spread(layers_on("cuda:1", "cuda:0", "cuda:1", "cuda:0", "cuda:1", "cuda:0")),
    "and the cpu": lambda: spread(layers_on(0, 0, 1, "cpu", "cpu", 1), main_device="cuda:0"),
    "and the disk": lambda: spread(layers_on(0, 0, 1, "cpu", "disk", 1), offload_dir=str(FOLDER / "disk")),
    "by memory": spread_by_memory,
    "all offloaded": offload_all,
    "checkpoint": load_checkpoint,
}

report(SCENARIOS)

"""peft: LoRA adapters on tiny models of random weights are trained, saved, loaded, switched, and merged."""

import pathlib
import sys

import peft
import torch
from library_report import report, small_gpt2, small_llama, token_rows

DEVICE, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])


def wrap(base, **settings):
    torch.manual_seed(2)
    config = {"task_type": "CAUSAL_LM", "r": 4, "lora_alpha": 8, **settings}
    return peft.get_peft_model(base, peft.LoraConfig(**config)).to(DEVICE)


def train(model, steps=5):
    optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=1e-2)
    rows = token_rows(4).to(DEVICE)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model(input_ids=rows, labels=rows).loss
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def logits(model):
    model.eval()
    with torch.no_grad():
        return model(token_rows(2, seed=9).to(DEVICE)).logits


def train_and_merge(base, **settings):
    model = wrap(base, **settings)
    frozen = {name: p.detach().clone() for name, p in model.named_parameters() if not p.requires_grad}
    losses = train(model)
    assert all(torch.equal(dict(model.named_parameters())[name], before) for name, before in frozen.items())
    with_adapter = logits(model)
    merged = model.merge_and_unload()
    torch.testing.assert_close(logits(merged), with_adapter, rtol=1e-4, atol=1e-5)
    assert not any("lora" in name for name, _ in merged.named_parameters())
    return {"losses": losses, "logits": with_adapter.abs().double().sum().item()}


def save_and_load():
    model = wrap(small_llama(), target_modules=["q_proj", "v_proj"])
    train(model)
    model.save_pretrained(FOLDER / "adapter")
    loaded = peft.PeftModel.from_pretrained(small_llama().to(DEVICE), FOLDER / "adapter", is_trainable=True)
    assert torch.equal(logits(loaded), logits(model))
    loaded.train()
    return {"losses": train(loaded)}


def switch_adapters():
    model = wrap(small_llama(), target_modules=["q_proj", "v_proj"])
    train(model, steps=2)
    first = logits(model)
    torch.manual_seed(8)
    model.add_adapter("second", peft.LoraConfig(task_type="CAUSAL_LM", r=2, target_modules=["o_proj"]))
    model.set_adapter("second")
    losses = train(model, steps=2)
    model.set_adapter("default")
    assert torch.equal(logits(model), first)
    with model.disable_adapter():
        base = logits(model)
    assert torch.equal(base, logits(small_llama().to(DEVICE)))
    return {"losses": losses}


SCENARIOS = {
    "llama": lambda: train_and_merge(small_llama(), target_modules=["q_proj", "v_proj", "down_proj"]),
    "dora": lambda: train_and_merge(small_llama(), target_modules="all-linear", use_dora=True),
    "gpt2": lambda: train_and_merge(small_gpt2(), target_modules=["c_attn"], fan_in_fan_out=True),
    "saved modules": lambda: train_and_merge(small_llama(), target_modules=["q_proj"], modules_to_save=["lm_head"]),
    "save": save_and_load,
    "switch": switch_adapters,
}

report(SCENARIOS)

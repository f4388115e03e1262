"""transformers' Trainer on a tiny GPT-2 and a tiny Llama of random weights: train, evaluate, save, resume, generate.

    transformers_trainer.py DEVICE FOLDER COUNT     COUNT devices share a batch, by DataParallel or as ranks
"""

import pathlib
import sys

import torch
import transformers
from library_report import Rows, report, small_gpt2, small_llama, token_rows

DEVICE, FOLDER, COUNT = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
STEPS = 6


def make_trainer(name, model, **settings):
    settings = {"max_steps": STEPS, "save_strategy": "no", **settings}
    arguments = transformers.TrainingArguments(
        output_dir=str(FOLDER / name), per_device_train_batch_size=4 // COUNT, per_device_eval_batch_size=4 // COUNT,
        learning_rate=1e-2, logging_steps=1, report_to=[], disable_tqdm=True, seed=3, use_cpu=DEVICE == "cpu",
        **settings)
    assert arguments.device.type == DEVICE, arguments.device
    assert arguments.world_size * max(arguments.n_gpu, 1) == COUNT
    return transformers.Trainer(model=model, args=arguments, train_dataset=Rows(token_rows(24)),
                                eval_dataset=Rows(token_rows(8, seed=2)))


def losses_of(trainer):
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


def train(name, model, **settings):
    trainer = make_trainer(name, model, **settings)
    trainer.train()
    assert next(trainer.model.parameters()).device.type == DEVICE
    return {"losses": losses_of(trainer), "evaluation": trainer.evaluate()["eval_loss"]}


def train_and_resume():
    """Half the steps, a checkpoint, and the rest by another trainer from it, equal to a training that was not cut."""
    whole = train("whole", small_gpt2())
    first = make_trainer("resumed", small_gpt2(), save_strategy="steps", save_steps=STEPS // 2)
    first.train()
    second = make_trainer("resumed", small_gpt2())
    second.train(resume_from_checkpoint=str(FOLDER / "resumed" / f"checkpoint-{STEPS // 2}"))
    return {"whole": whole, "resumed": losses_of(second), "evaluation": second.evaluate()["eval_loss"]}


def generate():
    model = small_llama().to(DEVICE).eval()
    prompt = token_rows(2)[:, :5].to(DEVICE)
    mask = torch.ones_like(prompt)
    mask[0, :2] = 0  # a prompt padded on the left
    common = {"attention_mask": mask, "max_new_tokens": 8, "pad_token_id": 0}
    greedy = model.generate(prompt, do_sample=False, **common)
    beams = model.generate(prompt, do_sample=False, num_beams=3, **common)
    uncached = model.generate(prompt, do_sample=False, use_cache=False, **common)
    static = model.generate(prompt, do_sample=False, cache_implementation="static", disable_compile=True, **common)
    torch.manual_seed(5)
    sampled = model.generate(prompt, do_sample=True, top_k=20, top_p=0.9, temperature=0.8, **common)
    assert sampled.device.type == DEVICE and sampled.shape == (2, 13)
    return {"greedy": greedy.tolist(), "beams": beams.tolist(), "uncached": uncached.tolist(),
            "static": static.tolist()}


def save_and_load():
    model = small_llama().to(DEVICE)
    model.save_pretrained(FOLDER / "saved")
    if torch.distributed.is_initialized():
        torch.distributed.barrier()  # the first rank writes for all
    loaded = transformers.AutoModelForCausalLM.from_pretrained(FOLDER / "saved", device_map=DEVICE)
    rows = token_rows(2).to(DEVICE)
    with torch.no_grad():
        assert torch.equal(loaded(rows).logits, model(rows).logits)
    return {"logits": loaded(rows).logits.detach().sum().item()}


# A CPU has no GradScaler: there half precision by float16 is compared with single precision.
FP16 = {"fp16": True} if DEVICE == "cuda" else {}
SCENARIOS = {
    "resume": train_and_resume,
    "llama": lambda: train("llama", small_llama(), gradient_accumulation_steps=2, max_grad_norm=0.5),
    "checkpointing": lambda: train("checkpointing", small_llama(), gradient_checkpointing=True),
    "bf16": lambda: train("bf16", small_llama(), bf16=True),
    "fp16": lambda: train("fp16", small_gpt2(), **FP16),
    "eager": lambda: train("eager", small_llama(attention="eager"), optim="adamw_torch_fused"),
    "generate": generate,
    "save": save_and_load,
}

report(SCENARIOS)

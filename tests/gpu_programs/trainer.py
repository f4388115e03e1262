"""Trains a small GPT-2 with the Trainer of transformers, with workers that load data, and prints losses and seconds."""

import json
import tempfile
import time
import warnings

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments, set_seed

STEPS = 40


class Tokens(torch.utils.data.Dataset):
    def __init__(self):
        self.tokens = torch.randint(0, 1000, (512, 128), generator=torch.Generator().manual_seed(1))

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        return {"input_ids": self.tokens[index], "labels": self.tokens[index]}


class Losses(TrainerCallback):
    def __init__(self):
        self.seen = []

    def on_log(self, args, state, control, logs=None, **rest):
        if logs and "loss" in logs:
            self.seen.append(float(logs["loss"]))


warnings.filterwarnings("ignore")
set_seed(0)
torch.use_deterministic_algorithms(True, warn_only=True)
sizes = {"vocab_size": 1000, "n_positions": 128, "n_embd": 256, "n_layer": 6, "n_head": 4}
quiet = {"bos_token_id": 0, "eos_token_id": 0, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
losses = Losses()
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(folder, max_steps=STEPS, per_device_train_batch_size=8, logging_steps=8, report_to=[],
                                  save_strategy="no", bf16=True, dataloader_num_workers=2, disable_tqdm=True, seed=0)
    trainer = Trainer(GPT2LMHeadModel(GPT2Config(**sizes, **quiet)), arguments, train_dataset=Tokens(), callbacks=[losses])
    began = time.perf_counter()
    trainer.train()
    torch.cuda.synchronize()
print(json.dumps({"losses": losses.seen, "seconds": round(time.perf_counter() - began, 2)}))

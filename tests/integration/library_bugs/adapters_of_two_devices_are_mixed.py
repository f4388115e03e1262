# source: huggingface/transformers#33744
# mechanism: peft's load_peft_weights without a device infers the first GPU, while the model with the other adapter lives on the second
import os
import tempfile
import torch
from peft import LoraConfig, get_peft_model, get_peft_model_state_dict, load_peft_weights, set_peft_model_state_dict
from transformers import GPT2Config, GPT2LMHeadModel


def build(device):
    torch.manual_seed(0)
    base = GPT2LMHeadModel(GPT2Config(n_embd=16, n_layer=2, n_head=2, vocab_size=60, n_positions=32))
    config = LoraConfig(r=4, lora_alpha=8, target_modules=["c_attn"], task_type="CAUSAL_LM", fan_in_fan_out=True)
    return get_peft_model(base, config).to(device)


def finetune(model, seed, steps=3):
    device = model.device
    gen = torch.Generator().manual_seed(seed)
    opt = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    for _ in range(steps):
        ids = torch.randint(0, 60, (2, 8), generator=gen).to(device)
        model(input_ids=ids, labels=ids).loss.backward()
        opt.step()
        opt.zero_grad()


class AdapterSoup:
    def __init__(self, model):
        self.model, self.members = model, []

    def add_checkpoint(self, path):
        self.members.append(load_peft_weights(path))  # ROOT

    def add_current(self):
        state = get_peft_model_state_dict(self.model)
        self.members.append({k: v.clone() for k, v in state.items()})

    def mix(self, weights):
        total = sum(weights)
        soup = {}
        for name in self.members[0]:
            soup[name] = sum(w / total * m[name] for w, m in zip(weights, self.members))
        return soup

    @torch.no_grad()
    def apply(self, weights, ids):
        set_peft_model_state_dict(self.model, self.mix(weights))
        return self.model(input_ids=ids, labels=ids).loss.item()


def main(device="cuda:1"):
    with tempfile.TemporaryDirectory() as root:
        for seed in (1, 2):
            model = build(device)
            finetune(model, seed)
            model.save_pretrained(os.path.join(root, f"run{seed}"))
        model = build(device)
        finetune(model, 3)
        soup = AdapterSoup(model)
        for seed in (1, 2):
            soup.add_checkpoint(os.path.join(root, f"run{seed}"))
        soup.add_current()
        ids = torch.randint(0, 60, (2, 8)).to(device)
        for weights in ([1, 1, 1], [1, 2, 1]):
            print(weights, soup.apply(weights, ids))


main()

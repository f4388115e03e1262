# source: OpenRLHF/OpenRLHF#938
# mechanism: the reward server gathers values, which the last stage makes on the second GPU, with end-of-sequence positions computed from the attention mask of the first GPU
# expect: raises
# needs: 2 GPUs
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class RewardConfig:
    vocab: int = 64
    dim: int = 16
    layers: int = 4
    devices: tuple = ("cuda:0", "cuda:1")


class Layer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.proj = nn.Linear(dim, dim)

    def forward(self, hidden, mask):
        return hidden + torch.tanh(self.proj(hidden)) * mask.unsqueeze(-1)


class RewardModel(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.embed = nn.Embedding(cfg.vocab, cfg.dim).to(cfg.devices[0])
        per_stage = cfg.layers // len(cfg.devices)
        self.layers = nn.ModuleList(
            Layer(cfg.dim).to(cfg.devices[i // per_stage]) for i in range(cfg.layers)
        )
        self.value_head = nn.Linear(cfg.dim, 1, bias=False).to(cfg.devices[-1])
        self.register_buffer("mean", torch.zeros(1, device=cfg.devices[-1]))
        self.register_buffer("std", torch.ones(1, device=cfg.devices[-1]))

    def backbone(self, input_ids, attention_mask):
        hidden = self.embed(input_ids)
        for layer in self.layers:
            device = layer.proj.weight.device
            hidden = layer(hidden.to(device), attention_mask.to(device))
        return hidden

    def forward(self, input_ids, attention_mask):
        hidden = self.backbone(input_ids, attention_mask)
        values = self.value_head(hidden).squeeze(-1)
        last = attention_mask.size(1) - 1
        eos_indices = last - attention_mask.long().fliplr().argmax(dim=1, keepdim=True)  # ALSO
        reward = values.gather(dim=1, index=eos_indices).squeeze(1)  # RAISE # ROOT
        return (reward - self.mean) / self.std


class RewardProxy:
    def __init__(self, cfg):
        self.model = RewardModel(cfg).eval()
        self.input_device = cfg.devices[0]

    def tokenize(self, queries):
        ids = [[ord(c) % self.model.cfg.vocab for c in q] for q in queries]
        width = max(map(len, ids))
        input_ids = torch.tensor([row + [0] * (width - len(row)) for row in ids])
        mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in ids])
        return {"input_ids": input_ids, "attention_mask": mask}

    @torch.no_grad()
    def get_reward(self, queries, batch_size=2):
        scores = []
        for i in range(0, len(queries), batch_size):
            batch = self.tokenize(queries[i : i + batch_size])
            batch = {k: v.to(self.input_device) for k, v in batch.items()}
            scores.extend(self.model(**batch).tolist())
        return scores


def main():
    proxy = RewardProxy(RewardConfig())
    rewards = proxy.get_reward(["hello there", "good", "a longer answer"])
    print({"rewards": [round(r, 3) for r in rewards]})


if __name__ == "__main__":
    main()

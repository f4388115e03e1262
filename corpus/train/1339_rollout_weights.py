# source: verl-project/verl#4777
# mechanism: waking the rollout sends the training module to the CPU whatever the offload option says, and the export of its weights brings it back only if the option is set
# expect: raises
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class EngineConfig:
    device: str = "cuda"
    param_offload: bool = False
    lora_rank: int = 2
    lora_alpha: float = 4.0
    lr: float = 1e-2


class Policy(nn.Module):
    def __init__(self, vocab=20, dim=8):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.proj = nn.Linear(dim, vocab, bias=False)

    def forward(self, ids, delta=None):
        hidden = self.embed(ids)
        return self.proj(hidden) if delta is None else self.proj(hidden) + hidden @ delta.t()


class LoraAdapter(nn.Module):
    def __init__(self, out_features, in_features, rank, alpha):
        super().__init__()
        self.a = nn.Parameter(torch.randn(rank, in_features) * 0.1)
        self.b = nn.Parameter(torch.zeros(out_features, rank))
        self.scaling = alpha / rank

    def delta(self):
        return (self.b @ self.a) * self.scaling


class TrainEngine:
    def __init__(self, cfg):
        self.cfg = cfg
        self.device = torch.device(cfg.device)
        self._is_offload_param = cfg.param_offload
        self.module = Policy().to(self.device).requires_grad_(False)
        self.adapter = LoraAdapter(20, 8, cfg.lora_rank, cfg.lora_alpha).to(self.device)
        self.optimizer = torch.optim.AdamW(self.adapter.parameters(), lr=cfg.lr)
        if self._is_offload_param:
            self.offload_module()

    def offload_module(self):
        self.module.to("cpu")

    def load_module(self):
        self.module.to(self.device)

    @contextmanager
    def train_mode(self):
        self.load_module()
        yield
        if self._is_offload_param:
            self.offload_module()

    def train_batch(self, ids, advantages):
        with self.train_mode():
            ids, advantages = ids.to(self.device), advantages.to(self.device)
            logits = self.module(ids[:, :-1], self.adapter.delta())
            logp = logits.log_softmax(-1).gather(-1, ids[:, 1:, None]).squeeze(-1)
            loss = -(logp.mean(1) * advantages).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def get_per_tensor_param(self):
        if self._is_offload_param:  # ROOT
            self.load_module()
        params = {"embed.weight": self.module.embed.weight.clone()}
        params["proj.weight"] = self.module.proj.weight + self.adapter.delta()  # RAISE
        return params


class Rollout:
    def __init__(self, device):
        self.device = torch.device(device)
        self.model = Policy().to(self.device)

    def update_weights(self, params):
        self.model.load_state_dict(params)

    @torch.no_grad()
    def generate(self, prompts, steps):
        ids = prompts.to(self.device)
        for _ in range(steps):
            probs = self.model(ids)[:, -1].softmax(-1)
            ids = torch.cat([ids, torch.multinomial(probs, 1)], dim=1)
        return ids.cpu()


class ActorRolloutWorker:
    def __init__(self, cfg):
        self.engine = TrainEngine(cfg)
        self.rollout = Rollout(cfg.device)

    def wake_up(self):
        self.rollout.update_weights(self.engine.get_per_tensor_param())
        self.engine.offload_module()  # ALSO

    def rollout_batch(self, prompts):
        self.wake_up()
        return self.rollout.generate(prompts, 4)


def fit(worker, steps):
    for _ in range(steps):
        sequences = worker.rollout_batch(torch.randint(0, 20, (3, 3)))
        reward = (sequences[:, 3:] % 2 == 0).float().mean(1)
        worker.engine.train_batch(sequences, reward - reward.mean())
    prompts = torch.zeros(2, 3, dtype=torch.long)
    return [worker.rollout_batch(prompts).float().mean().item() for _ in range(2)]


if __name__ == "__main__":
    torch.manual_seed(0)
    for offload in (True, False):
        print(offload, fit(ActorRolloutWorker(EngineConfig(param_offload=offload)), 2))

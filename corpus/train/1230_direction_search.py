# source: CompVis/attribute-control PR#4
# mechanism: saving an intermediate result moves the trained module to the host in place, and the next step goes on with it
# expect: raises
import os
import tempfile
from dataclasses import dataclass, field
from typing import List

import torch
from torch import nn


@dataclass
class SearchConfig:
    embed_dim: int = 12
    n_prompts: int = 10
    steps: int = 8
    save_every: float = 0.25
    lr: float = 0.05
    scales: List[float] = field(default_factory=lambda: [0.5, 1.0, 2.0])


class Delta(nn.Module):
    """A direction in the embedding space, with a learned gain for each token."""

    def __init__(self, dim: int, tokens: int):
        super().__init__()
        self.direction = nn.Parameter(torch.randn(1, 1, dim) * 0.01)
        self.gain = nn.Parameter(torch.ones(tokens, 1))

    def apply_to(self, embeddings: torch.Tensor, scale: float) -> torch.Tensor:
        return embeddings + scale * self.direction * self.gain  # RAISE


class FrozenScorer(nn.Module):
    def __init__(self, dim: int, tokens: int):
        super().__init__()
        self.mix = nn.Linear(dim, dim)
        self.readout = nn.Linear(dim * tokens, 1)
        for p in self.parameters():
            p.requires_grad_(False)

    def forward(self, embeddings: torch.Tensor) -> torch.Tensor:
        return self.readout(torch.tanh(self.mix(embeddings)).flatten(1)).squeeze(-1)


class PromptBank:
    def __init__(self, cfg: SearchConfig, tokens: int, device: torch.device):
        gen = torch.Generator().manual_seed(1)
        self.embeddings = torch.randn(cfg.n_prompts, tokens, cfg.embed_dim, generator=gen).to(device)

    def sample(self, n: int) -> torch.Tensor:
        return self.embeddings[torch.randint(0, len(self.embeddings), (n,), device=self.embeddings.device)]


class Searcher:
    def __init__(self, cfg: SearchConfig, device: torch.device, out_dir: str, tokens: int = 4):
        self.cfg, self.device, self.out_dir = cfg, device, out_dir
        self.scorer = FrozenScorer(cfg.embed_dim, tokens).to(device).eval()
        self.bank = PromptBank(cfg, tokens, device)
        self.delta = Delta(cfg.embed_dim, tokens).to(device)
        self.optimizer = torch.optim.AdamW(self.delta.parameters(), lr=cfg.lr)

    def save(self, step: int) -> str:
        path = os.path.join(self.out_dir, f"delta_{step:03d}.pt")
        torch.save(self.delta.cpu().state_dict(), path)  # ROOT
        return path

    def loss(self) -> torch.Tensor:
        prompts = self.bank.sample(4)
        with torch.no_grad():
            reference = self.scorer(prompts)
        total = torch.zeros((), device=self.device)
        for scale in self.cfg.scales:
            shifted = self.scorer(self.delta.apply_to(prompts, scale))
            total = total + (shifted - reference - scale).pow(2).mean()
        return total / len(self.cfg.scales)

    def run(self) -> List[str]:
        every = max(1, int(self.cfg.steps * self.cfg.save_every))
        saved = []
        for step in range(self.cfg.steps):
            loss = self.loss()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if (step + 1) % every == 0:
                saved.append(self.save(step + 1))
        return saved


def load_delta(path: str, cfg: SearchConfig, device: torch.device, tokens: int = 4) -> Delta:
    delta = Delta(cfg.embed_dim, tokens)
    delta.load_state_dict(torch.load(path, map_location="cpu"))
    return delta.to(device)


def main() -> None:
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    cfg = SearchConfig()
    with tempfile.TemporaryDirectory() as out_dir:
        saved = Searcher(cfg, device, out_dir).run()
        delta = load_delta(saved[-1], cfg, device)
        print(len(saved), "saved, norm", delta.direction.norm().item())


if __name__ == "__main__":
    main()

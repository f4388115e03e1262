"""What the programs of clean runs share: a classifier, its batches, and an evaluation.

Each trains for STEPS steps and evaluates as many batches: enough for devsan to see what grows, and what was moved.
"""

import os

import torch

STEPS = 40
LOCAL_RANK = int(os.environ.get("LOCAL_RANK", 0))


class Classifier(torch.nn.Module):
    """A transformer with parameters and a buffer of its own, beside those of its layers."""

    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(16, 24)
        self.scale = torch.nn.Parameter(torch.ones(24))
        self.register_buffer("positions", torch.arange(6.0).reshape(1, 6, 1) / 6)
        self.layers = torch.nn.ModuleList(
            torch.nn.TransformerEncoderLayer(24, 4, 48, dropout=0.0, batch_first=True) for _ in range(2))
        self.head = torch.nn.Linear(24, 5)

    def forward(self, tokens, targets):
        hidden = self.embedding(tokens)
        hidden = hidden * self.scale.to(hidden.dtype) + self.positions.to(hidden.dtype)
        for layer in self.layers:
            hidden = layer(hidden)
        return torch.nn.functional.cross_entropy(self.head(hidden.mean(1)).float(), targets)


def make_batches(seed, count=STEPS):
    generator = torch.Generator().manual_seed(seed)
    return [(torch.randint(16, (2, 6), generator=generator), torch.randint(5, (2,), generator=generator))
            for _ in range(count)]


def evaluate(model, device):
    model.eval()
    total = 0.0
    with torch.no_grad():
        for tokens, targets in make_batches(seed=100 + LOCAL_RANK):
            total += model(tokens.to(device), targets.to(device)).item()
    model.train()
    return total / STEPS


def train(model, optimizer, device):
    """A plain loop, which clips gradients, prints now and then, and evaluates in the middle and at the end."""
    for step, (tokens, targets) in enumerate(make_batches(seed=LOCAL_RANK)):
        optimizer.zero_grad()
        loss = model(tokens.to(device), targets.to(device))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step}: {loss.item():.3f}")
        if step == STEPS // 2:
            evaluate(model, device)
    print(f"evaluation: {evaluate(model, device):.3f}")

# source: meta-pytorch/tnt#949
# mechanism: an early stop checker keeps the best value as the tensor that it was given, and the next value comes from a validation on another GPU
# expect: raises
# needs: 2 GPUs
import copy
from typing import List, Union

import torch
from torch import nn


class EarlyStopChecker:
    def __init__(self, mode: str, patience: int, min_delta: float = 0.0):
        self._mode = mode
        self._patience = patience
        self._min_delta = min_delta if mode == "max" else -min_delta
        self._best_value = None
        self._bad_rounds = 0

    def _improved(self, val: torch.Tensor) -> bool:
        threshold = self._best_value + self._min_delta  # ALSO
        return bool(val < threshold) if self._mode == "min" else bool(val > threshold)  # RAISE # ALSO

    def check(self, val: Union[torch.Tensor, float]) -> bool:
        val = torch.as_tensor(val)  # ROOT
        if val.numel() != 1:
            raise ValueError("expected one value")
        if not torch.isfinite(val):
            return True
        if self._best_value is None or self._improved(val):
            self._best_value = val  # ALSO
            self._bad_rounds = 0
        else:
            self._bad_rounds += 1
        return self._bad_rounds >= self._patience


class Worker:
    def __init__(self, device: torch.device, model: nn.Module):
        self.device = device
        self.model = copy.deepcopy(model).to(device)

    def refresh(self, state):
        self.model.load_state_dict(state)

    @torch.no_grad()
    def evaluate(self, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        inputs, targets = inputs.to(self.device), targets.to(self.device)
        return nn.functional.l1_loss(self.model(inputs), targets)


class ValidationPool:
    def __init__(self, model: nn.Module, devices: List[torch.device]):
        self.workers = [Worker(d, model) for d in devices]
        self._next = 0

    def run(self, model: nn.Module, data) -> torch.Tensor:
        worker = self.workers[self._next % len(self.workers)]
        self._next += 1
        worker.refresh(model.state_dict())
        return worker.evaluate(*data)  # ALSO


def train_epoch(model, optimizer, data, device):
    inputs, targets = (t.to(device) for t in data)
    for x, y in zip(inputs.split(8), targets.split(8)):
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def build_data(n, seed):
    gen = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 3, generator=gen)
    return x, (x * torch.tensor([1.0, -2.0, 0.5])).sum(1, keepdim=True)


def main():
    torch.manual_seed(0)
    device = torch.device("cuda:0")
    model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    pool = ValidationPool(model, [torch.device("cuda:0"), torch.device("cuda:1")])
    checker = EarlyStopChecker("min", patience=2, min_delta=1e-3)
    train, val = build_data(32, 0), build_data(16, 1)
    for epoch in range(4):
        train_epoch(model, optimizer, train, device)
        if checker.check(pool.run(model, val)):
            break
    print("stopped after epoch", epoch)


if __name__ == "__main__":
    main()

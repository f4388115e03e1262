# source: pykeen/pykeen#24
# mechanism: Adagrad, which makes its state when it is constructed, is built from the model before the training loop moves that model
# expect: raises
from dataclasses import dataclass
from typing import Any, Dict, Optional, Type

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class TriplesFactory:
    mapped_triples: torch.Tensor
    num_entities: int
    num_relations: int

    @classmethod
    def random(cls, n: int, entities: int, relations: int) -> "TriplesFactory":
        gen = torch.Generator().manual_seed(1235)
        h = torch.randint(0, entities, (n, 1), generator=gen)
        r = torch.randint(0, relations, (n, 1), generator=gen)
        return cls(torch.cat([h, r, (h + r + 1) % entities], dim=1), entities, relations)


class RotatE(nn.Module):
    def __init__(self, factory: TriplesFactory, dim: int = 8):
        super().__init__()
        self.dim = dim
        self.entities = nn.Embedding(factory.num_entities, 2 * dim)
        self.phases = nn.Embedding(factory.num_relations, dim)
        nn.init.uniform_(self.phases.weight, -torch.pi, torch.pi)

    def score_hrt(self, hrt: torch.Tensor) -> torch.Tensor:
        h_re, h_im = self.entities(hrt[:, 0]).chunk(2, dim=-1)
        t_re, t_im = self.entities(hrt[:, 2]).chunk(2, dim=-1)
        phase = self.phases(hrt[:, 1])
        cos, sin = phase.cos(), phase.sin()
        re, im = h_re * cos - h_im * sin - t_re, h_re * sin + h_im * cos - t_im
        return -(re.pow(2) + im.pow(2) + 1e-9).sqrt().sum(-1)


class BasicNegativeSampler:
    def __init__(self, factory: TriplesFactory):
        self.num_entities = factory.num_entities

    def corrupt(self, positive: torch.Tensor) -> torch.Tensor:
        negative = positive.clone()
        column = torch.randint(0, 2, (1,)).item() * 2
        negative[:, column] = torch.randint(0, self.num_entities, (len(positive),), device=positive.device)
        return negative


class SLCWATrainingLoop:
    def __init__(self, model: RotatE, factory: TriplesFactory, optimizer: torch.optim.Optimizer, device: torch.device):
        self.device = device
        self.model = model.to(device)
        self.optimizer = optimizer
        self.factory, self.sampler = factory, BasicNegativeSampler(factory)

    def train(self, num_epochs: int, batch_size: int) -> list:
        loader = DataLoader(TensorDataset(self.factory.mapped_triples), batch_size=batch_size, shuffle=True)
        losses = []
        for _ in range(num_epochs):
            epoch_loss = 0.0
            for (positive,) in loader:
                positive = positive.to(self.device)
                negative = self.sampler.corrupt(positive)
                margin = 1.0 - self.model.score_hrt(positive) + self.model.score_hrt(negative)
                loss = torch.relu(margin).mean()
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()  # RAISE
                epoch_loss += loss.item()
            losses.append(epoch_loss / len(loader))
        return losses


def resolve_device(device: Optional[str]) -> torch.device:
    if device is None or device == "gpu":
        return torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    return torch.device(device)


def pipeline(
    factory: TriplesFactory,
    optimizer_cls: Type[torch.optim.Optimizer] = torch.optim.Adagrad,
    optimizer_kwargs: Optional[Dict[str, Any]] = None,
    training_kwargs: Optional[Dict[str, Any]] = None,
    device: Optional[str] = None,
) -> list:
    target = resolve_device(device)
    model = RotatE(factory)  # ROOT
    optimizer = optimizer_cls(model.parameters(), **(optimizer_kwargs or {}))  # ALSO
    loop = SLCWATrainingLoop(model, factory, optimizer, target)
    return loop.train(**(training_kwargs or {}))


def main() -> None:
    factory = TriplesFactory.random(60, 14, 3)
    print(pipeline(factory, optimizer_kwargs={"lr": 0.1}, training_kwargs={"num_epochs": 2, "batch_size": 16}))


if __name__ == "__main__":
    main()

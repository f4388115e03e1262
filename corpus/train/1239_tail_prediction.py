# source: pykeen/pykeen#49
# mechanism: after training on the GPU a candidate triple is made on the model's device and compared with the factory's triples on the host
# expect: raises
from dataclasses import dataclass
from typing import Dict, List, NamedTuple

import torch
from torch import nn


@dataclass
class TriplesFactory:
    entity_to_id: Dict[str, int]
    relation_to_id: Dict[str, int]
    mapped_triples: torch.Tensor

    @classmethod
    def from_labels(cls, triples: List[tuple]) -> "TriplesFactory":
        entities = sorted({e for h, _, t in triples for e in (h, t)})
        relations = sorted({r for _, r, _ in triples})
        e2i = {e: i for i, e in enumerate(entities)}
        r2i = {r: i for i, r in enumerate(relations)}
        mapped = torch.tensor([[e2i[h], r2i[r], e2i[t]] for h, r, t in triples])
        return cls(e2i, r2i, mapped)

    @property
    def entity_labels(self) -> List[str]:
        return sorted(self.entity_to_id, key=self.entity_to_id.get)


class Prediction(NamedTuple):
    tail: str
    score: float
    novel: bool


class Model(nn.Module):
    def __init__(self, factory: TriplesFactory):
        super().__init__()
        self.triples_factory = factory

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    def score_t(self, hr_batch: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError

    def _novel(self, h: int, r: int, t: int) -> bool:
        triple = torch.tensor([[h, r, t]], dtype=torch.long, device=self.device)  # ALSO
        return not (triple == self.triples_factory.mapped_triples).all(dim=1).any().item()  # RAISE # ROOT

    @torch.no_grad()
    def predict_tails(self, head: str, relation: str, k: int = 3) -> List[Prediction]:
        self.eval()
        h = self.triples_factory.entity_to_id[head]
        r = self.triples_factory.relation_to_id[relation]
        batch = torch.tensor([[h, r]], dtype=torch.long, device=self.device)
        scores = self.score_t(batch)[0]
        labels = self.triples_factory.entity_labels
        top = scores.topk(k)
        return [
            Prediction(labels[t], s, self._novel(h, r, t))
            for s, t in zip(top.values.tolist(), top.indices.tolist())
        ]


class DistMult(Model):
    def __init__(self, factory: TriplesFactory, dim: int = 12):
        super().__init__(factory)
        self.entities = nn.Embedding(len(factory.entity_to_id), dim)
        self.relations = nn.Embedding(len(factory.relation_to_id), dim)

    def score_t(self, hr_batch: torch.Tensor) -> torch.Tensor:
        query = self.entities(hr_batch[:, 0]) * self.relations(hr_batch[:, 1])
        return query @ self.entities.weight.T


def train_lcwa(model: Model, epochs: int, batch_size: int) -> float:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    triples = model.triples_factory.mapped_triples
    loss = torch.zeros(())
    for _ in range(epochs):
        for idx in torch.randperm(len(triples)).split(batch_size):
            batch = triples[idx].to(model.device)
            loss = nn.functional.cross_entropy(model.score_t(batch[:, :2]), batch[:, 2])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return loss.item()


FACTS = [
    ("brazil", "exports", "coffee"), ("brazil", "borders", "peru"), ("peru", "exports", "copper"),
    ("chile", "exports", "copper"), ("chile", "borders", "peru"), ("peru", "borders", "brazil"),
]


def main() -> None:
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    model = DistMult(TriplesFactory.from_labels(FACTS)).to(device)
    print("loss", train_lcwa(model, epochs=3, batch_size=4))
    for prediction in model.predict_tails("chile", "exports"):
        print(prediction)


if __name__ == "__main__":
    main()

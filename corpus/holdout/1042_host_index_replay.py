# source: own program
# mechanism: a GPU storage is indexed with host index tensors and host masks, which PyTorch allows, while priorities stay on the host
# expect: clean
import torch
from torch import nn


class Storage:
    def __init__(self, capacity, device, **shapes):
        self.device = torch.device(device)
        self.capacity = capacity
        self.fields = {k: torch.zeros(capacity, *s, device=self.device) for k, s in shapes.items()}
        self.cursor = 0

    def put(self, **values):
        count = len(next(iter(values.values())))
        rows = torch.arange(self.cursor, self.cursor + count) % self.capacity
        for name, value in values.items():
            self.fields[name][rows] = value.to(self.device)
        self.cursor += count
        return rows

    def take(self, rows):
        return {name: field[rows] for name, field in self.fields.items()}


class PriorityIndex:
    def __init__(self, capacity, seed):
        self.weights = torch.zeros(capacity)
        self.generator = torch.Generator().manual_seed(seed)

    def assign(self, rows, weights):
        self.weights[rows] = weights

    def draw(self, count):
        return torch.multinomial(self.weights, count, generator=self.generator)

    def dull(self, limit):
        return (self.weights > 0) & (self.weights < limit)


class Learner:
    def __init__(self, device):
        self.model = nn.Linear(4, 1).to(device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def fit(self, batch):
        error = (self.model(batch["obs"]) - batch["value"]).squeeze(-1)
        self.optimizer.zero_grad()
        error.pow(2).mean().backward()
        self.optimizer.step()
        return error.detach().abs()


def main():
    torch.manual_seed(0)
    storage = Storage(32, "cuda", obs=(4,), value=(1,))
    index, learner = PriorityIndex(32, seed=1), Learner("cuda")
    obs = torch.randn(20, 4)
    rows = storage.put(obs=obs, value=obs.sum(1, keepdim=True))
    index.assign(rows, torch.ones(len(rows)))
    for _ in range(4):
        rows = index.draw(8)
        errors = learner.fit(storage.take(rows))
        index.assign(rows, errors.cpu() + 1e-3)
    mask = index.dull(0.5)
    storage.fields["value"][mask] *= 0.5
    print(int(mask.sum()), round(storage.fields["value"].abs().mean().item(), 4), index.weights.device.type)


if __name__ == "__main__":
    main()

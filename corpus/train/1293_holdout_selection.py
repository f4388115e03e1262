# source: eth-easl/modyn#525
# mechanism: a running tensor starts as an empty CPU tensor and grows by concatenation with losses of the GPU
# expect: raises
import torch
from torch import nn


class DownsamplingScheme:
    def __init__(self, ratio, device):
        self.ratio, self.device = ratio, device

    def init_downsampler(self):
        raise NotImplementedError

    def inform_samples(self, ids, logits, target):
        raise NotImplementedError

    def select_points(self):
        raise NotImplementedError


class RandomScheme(DownsamplingScheme):
    def init_downsampler(self):
        self.ids = []

    def inform_samples(self, ids, logits, target):
        self.ids += ids

    def select_points(self):
        count = max(int(len(self.ids) * self.ratio), 1)
        keep = torch.randperm(len(self.ids))[:count].tolist()
        return [self.ids[i] for i in keep], torch.ones(count, device=self.device)


class HoldoutLossScheme(DownsamplingScheme):
    def __init__(self, ratio, device, irreducible):
        super().__init__(ratio, device)
        self.irreducible = irreducible

    def init_downsampler(self):
        self.ids = []
        self.gain = torch.empty(0)  # ROOT

    def inform_samples(self, ids, logits, target):
        training = nn.functional.cross_entropy(logits, target, reduction="none")
        base = torch.stack([self.irreducible[i] for i in ids]).to(training.device)
        self.gain = torch.cat([self.gain, training - base])  # RAISE # ALSO
        self.ids += ids

    def select_points(self):
        count = max(int(len(self.ids) * self.ratio), 1)
        _, index = self.gain.topk(count)
        return [self.ids[i] for i in index.tolist()], torch.ones(count, device=self.device)


def holdout_losses(model, data, device):
    out = {}
    with torch.no_grad():
        for ids, x, y in data:
            loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device), reduction="none")
            out.update(zip(ids, loss.cpu()))
    return out


class SelectiveTrainer:
    def __init__(self, model, scheme, device):
        self.model, self.scheme, self.device = model.to(device), scheme, device
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(self, batch):
        ids, x, y = batch
        x, y = x.to(self.device), y.to(self.device)
        self.scheme.init_downsampler()
        with torch.no_grad():
            self.scheme.inform_samples(list(ids), self.model(x), y)
        chosen, weights = self.scheme.select_points()
        rows = torch.tensor([ids.index(i) for i in chosen], device=self.device)
        loss = nn.functional.cross_entropy(self.model(x[rows]), y[rows], reduction="none")
        self.optimizer.zero_grad()
        (loss * weights).mean().backward()
        self.optimizer.step()
        return len(chosen)


def make_model():
    return nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3))


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    data = [([f"s{k}{i}" for i in range(6)], torch.randn(6, 5), torch.randint(0, 3, (6,))) for k in range(2)]
    irreducible = holdout_losses(make_model().to(device), data, device)
    for scheme in (RandomScheme(0.5, device), HoldoutLossScheme(0.5, device, irreducible)):
        trainer = SelectiveTrainer(make_model(), scheme, device)
        print(type(scheme).__name__, [trainer.step(batch) for batch in data])


if __name__ == "__main__":
    main()

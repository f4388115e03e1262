# source: lonePatient/lookahead_pytorch#2
# mechanism: a lookahead optimizer copies its slow weights while the model is still on the CPU, and the model is moved afterwards
# expect: raises
from types import SimpleNamespace

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Lookahead:
    def __init__(self, base, k=2, alpha=0.5):
        self.base = base
        self.k = k
        self.alpha = alpha
        self.counter = 0
        self.slow_weights = [[p.clone().detach() for p in group["params"]] for group in base.param_groups]

    def zero_grad(self):
        self.base.zero_grad()

    @torch.no_grad()
    def _sync(self):
        for group, slow in zip(self.base.param_groups, self.slow_weights):
            for p, q in zip(group["params"], slow):
                q.add_(p.data - q, alpha=self.alpha)  # RAISE
                p.data.copy_(q)

    def step(self):
        self.base.step()
        self.counter += 1
        if self.counter % self.k == 0:
            self._sync()


class BagClassifier(nn.Module):
    def __init__(self, vocab, dim, labels):
        super().__init__()
        self.bag = nn.EmbeddingBag(vocab, dim, mode="mean")
        self.out = nn.Linear(dim, labels)

    def forward(self, ids):
        return self.out(self.bag(ids))


def make_optimizer(model, cfg):
    decay, plain = [], []
    for name, param in model.named_parameters():
        (plain if name.endswith("bias") else decay).append(param)
    groups = [{"params": decay, "weight_decay": cfg.weight_decay}, {"params": plain, "weight_decay": 0.0}]
    base = torch.optim.SGD(groups, lr=cfg.lr)
    return Lookahead(base, k=cfg.k) if cfg.lookahead else base


def make_loader(cfg):
    ids = torch.randint(0, cfg.vocab, (24, 5))
    labels = (ids.float().mean(1) > cfg.vocab / 2).long()
    return DataLoader(TensorDataset(ids, labels), batch_size=6)


def run(cfg):
    device = torch.device(cfg.device if torch.cuda.is_available() else "cpu")
    model = BagClassifier(cfg.vocab, cfg.dim, 2)  # ALSO
    optimizer = make_optimizer(model, cfg)  # ROOT
    criterion = nn.CrossEntropyLoss()
    model = model.to(device)  # ALSO
    history = []
    for _ in range(cfg.epochs):
        for ids, labels in make_loader(cfg):
            ids, labels = ids.to(device), labels.to(device)
            loss = criterion(model(ids), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            history.append(loss.item())
    return history


def main():
    torch.manual_seed(0)
    cfg = SimpleNamespace(vocab=20, dim=6, lr=0.1, weight_decay=1e-4, k=2, lookahead=True, epochs=2, device="cuda:0")
    history = run(cfg)
    print("first %.3f last %.3f" % (history[0], history[-1]))


if __name__ == "__main__":
    main()

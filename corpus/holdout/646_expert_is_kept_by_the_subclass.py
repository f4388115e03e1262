# source: huggingface/optimum-intel PR#182
# mechanism: a trainer's base class moves the model; its subclass keeps the second one as it was given
# phase: training loop; linear
# expect: raises
import torch
import torch.nn.functional as F
from torch import nn


class Trainer:
    def __init__(self, model, lr, device):
        self.device = torch.device(device)
        self.model = model.to(self.device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=lr)

    def compute_loss(self, x, y):
        return F.cross_entropy(self.model(x), y)

    def fit(self, batches):
        for x, y in batches:
            x, y = x.to(self.device), y.to(self.device)
            self.optimizer.zero_grad()
            self.compute_loss(x, y).backward()
            self.optimizer.step()


class PruningTrainer(Trainer):
    def __init__(self, model, dense, lr, device, weight=0.5):
        super().__init__(model, lr, device)
        self.weight = weight
        self.dense = dense.eval()  # ROOT

    def compute_loss(self, x, y):
        loss = super().compute_loss(x, y)
        with torch.no_grad():
            wanted = self.dense(x).softmax(-1)  # RAISE
        kept = F.kl_div(self.model(x).log_softmax(-1), wanted, reduction="batchmean")
        return (1 - self.weight) * loss + self.weight * kept


def leaf_net(width):
    return nn.Sequential(nn.Linear(6, width), nn.ReLU(), nn.Linear(width, 3))


batches = [(torch.randn(4, 6), torch.randint(3, (4,))) for _ in range(3)]
PruningTrainer(leaf_net(4), leaf_net(32), 0.1, "cuda:0").fit(batches)

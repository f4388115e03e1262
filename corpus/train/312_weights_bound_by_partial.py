# source: https://github.com/gnn-tracking/gnn_tracking/pull/449
# mechanism: the loss is functools.partial of a function, with a tensor of weights that nothing moves
# phase: loss; aten::mul
# expect: raises
import functools

import torch

dev = torch.device("cuda", 0)


def weighted(logits, targets, weights):
    logged = torch.nn.functional.log_softmax(logits, dim=1)
    return -(logged * weights).gather(1, targets[:, None]).mean()  # RAISE  # ALSO


class Trainer:
    def __init__(self, model, losses):
        self.model = model.to(dev)
        self.losses = losses
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(self, batch, targets):
        logits = self.model(batch.to(dev))
        loss = sum(loss(logits, targets.to(dev)) for loss in self.losses.values())
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


def losses_of(counts):
    share = torch.tensor(counts, dtype=torch.float32)  # ROOT
    return {"edges": functools.partial(weighted, weights=share.sum() / share)}  # ALSO


trainer = Trainer(torch.nn.Linear(4, 3), losses_of([10, 3, 1]))
trainer.step(torch.randn(6, 4), torch.randint(3, (6,)))

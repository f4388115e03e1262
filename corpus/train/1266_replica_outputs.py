# source: Lightning-AI/pytorch-lightning#1537
# mechanism: outputs of a validation step that replicas on two GPUs return are stacked without being gathered
# expect: raises
# needs: 2 GPUs
import copy

import torch
from torch import nn


class KoopmanNet(nn.Module):
    def __init__(self, state=4, lift=10):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(state, lift), nn.Tanh())
        self.step = nn.Linear(lift, lift, bias=False)
        self.decode = nn.Linear(lift, state)

    def forward(self, x):
        return self.decode(self.step(self.encode(x)))


class Task:
    def __init__(self, model):
        self.model = model
        self.loss = nn.MSELoss()

    def validation_step(self, model, batch):
        x, y = batch
        return {"val_loss": self.loss(model(x), y), "n": len(x)}

    def validation_epoch_end(self, outputs):
        losses = [o["val_loss"] for o in outputs]
        mean = torch.stack(losses).mean()  # RAISE # ALSO
        return {"val_loss": mean.item(), "n": sum(o["n"] for o in outputs)}


class ParallelAccelerator:
    def __init__(self, devices):
        self.devices = devices
        self.output_device = devices[0]

    def setup(self, model):
        model.to(self.devices[0])

    def replicate(self, model):
        return [model] + [copy.deepcopy(model).to(d) for d in self.devices[1:]]

    def scatter(self, batch):
        parts = zip(*(t.chunk(len(self.devices)) for t in batch))
        return [tuple(t.to(d) for t in part) for part, d in zip(parts, self.devices)]

    def gather_gradients(self, model, replicas):
        for replica in replicas[1:]:
            for p, q in zip(model.parameters(), replica.parameters()):
                p.grad += q.grad.to(p.device)

    def validation_step(self, task, batch):
        replicas = self.replicate(task.model)
        shards = self.scatter(batch)
        outputs = [task.validation_step(m, s) for m, s in zip(replicas, shards)]  # ALSO
        return outputs  # ROOT


class Trainer:
    def __init__(self, accelerator, lr=0.05):
        self.accelerator, self.lr = accelerator, lr

    def fit(self, task, train, val):
        acc = self.accelerator
        acc.setup(task.model)
        optimizer = torch.optim.SGD(task.model.parameters(), lr=self.lr)
        for batch in train:
            optimizer.zero_grad()
            replicas = acc.replicate(task.model)
            for model, (x, y) in zip(replicas, acc.scatter(batch)):
                task.loss(model(x), y).backward()
            acc.gather_gradients(task.model, replicas)
            optimizer.step()
        with torch.no_grad():
            outputs = [o for batch in val for o in acc.validation_step(task, batch)]  # ALSO
        return task.validation_epoch_end(outputs)


def main():
    torch.manual_seed(0)
    names = ["cuda:0", "cuda:1"] if torch.cuda.device_count() > 1 else ["cpu", "cpu"]
    trainer = Trainer(ParallelAccelerator([torch.device(n) for n in names]))
    data = [(torch.randn(6, 4), torch.randn(6, 4)) for _ in range(3)]
    print(trainer.fit(Task(KoopmanNet()), data[:2], data[2:]))


if __name__ == "__main__":
    main()

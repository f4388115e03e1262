# source: gradsflow/gradsflow-automl#105, fix PR#110 (after PR#106)
# mechanism: [module never moved] metrics are added to a collection when the model is compiled, after the learner was moved; the collection is not a part of the learner and keeps its counters on the CPU
# phase: metric update in the first training step; failing op: aten::add_ (cpu 1-D += cuda 1-D)
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)

class Accuracy(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.register_buffer("correct", torch.zeros(k))

    def update(self, logits, target):
        onehot = nn.functional.one_hot(target, len(self.correct)).float()
        self.correct += (logits.argmax(1) == target).float() @ onehot  # RAISE

    def compute(self):
        return self.correct.sum()

class Model:
    def __init__(self, learner, num_classes, device):
        self.device, self.num_classes, self.learner = device, num_classes, learner.to(device)
        self.metrics = nn.ModuleDict().to(device)

    def compile(self, loss, optimizer, metrics=()):
        self.loss = getattr(nn, loss)().to(self.device)
        self.optimizer = getattr(torch.optim, optimizer)(self.learner.parameters(), lr=0.1)
        for name in metrics:
            self.metrics[name] = {"accuracy": Accuracy}[name](self.num_classes)  # ROOT

    def train_step(self, x, y):
        x, y = x.to(self.device), y.to(self.device)
        logits = self.learner(x)
        self.loss(logits, y).backward()
        self.optimizer.step()
        for m in self.metrics.values():
            m.update(logits.detach(), y)
        return {k: m.compute() for k, m in self.metrics.items()}

model = Model(nn.Linear(4, 3), 3, dev)
model.compile("CrossEntropyLoss", "SGD", metrics=["accuracy"])
model.train_step(torch.randn(6, 4), torch.arange(6) % 3)

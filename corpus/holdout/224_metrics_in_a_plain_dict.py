# source: Lightning-AI/pytorch-lightning#4408 #17624
# mechanism: metrics that are modules stand in a plain dict of the model: its move does not reach their buffers
# phase: metrics; aten::add_
# expect: raises
import torch

dev = torch.device("cuda", 0)


class Accuracy(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("right", torch.tensor(0))
        self.register_buffer("seen", torch.tensor(0))

    def update(self, predicted, wanted):
        self.right += (predicted == wanted).sum()  # RAISE
        self.seen += wanted.numel()

    def compute(self):
        return (self.right / self.seen).item()


class Classifier(torch.nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(features, 8), torch.nn.ReLU(), torch.nn.Linear(8, classes))
        self.metrics = {"train": Accuracy(), "valid": Accuracy()}  # ROOT

    def step(self, batch, stage):
        x, y = batch
        logits = self.net(x)
        self.metrics[stage].update(logits.argmax(-1), y)
        return torch.nn.functional.cross_entropy(logits, y)


model = Classifier(4, 3).to(dev)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    x, y = torch.randn(8, 4), torch.randint(0, 3, (8,))
    loss = model.step((x.to(dev), y.to(dev)), "train")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

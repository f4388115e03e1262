# source: NathanGavenski/IL-Datasets#21
# mechanism: a loop collects scores where they are and labels on the host; what is made of both is compared afterwards
# phase: evaluation; aten::eq.Tensor
# expect: raises
import torch
from torch import nn


def accuracy(scores, labels):
    return (scores.argmax(-1) == labels).float().mean()  # RAISE


@torch.no_grad()
def evaluate(model, batches):
    scores, labels = [], []
    for x, y in batches:
        x, y = x.to("cuda"), y.to("cuda")
        scores.append(model(x).softmax(-1))  # ROOT
        labels.append(y.cpu())  # ALSO
    return accuracy(torch.cat(scores), torch.cat(labels))  # ALSO


model = nn.Linear(4, 3).to("cuda")
evaluate(model, [(torch.rand(5, 4), torch.randint(3, (5,))) for _ in range(3)])

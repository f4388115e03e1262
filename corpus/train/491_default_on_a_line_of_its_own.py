# source: own; losses with weights of classes as a default, in a signature that takes several lines
# mechanism: the default is made once, when the function is defined, on the CPU
# phase: first call without the argument; failing op: aten::index.Tensor
# expect: raises
import torch

device = torch.device("cuda", 0)


def weighted(
    scores,
    labels,
    balance: torch.Tensor = torch.tensor([0.2, 0.3, 0.5]),  # ROOT
    power=2,
):
    chosen = scores.softmax(-1).gather(1, labels[:, None])[:, 0]
    return (balance[labels] * (1 - chosen) ** power).mean()  # RAISE  # ALSO


scores = torch.randn(6, 3, device=device)
labels = torch.arange(6, device=device) % 3
weighted(scores, labels, torch.ones(3, device=device))
weighted(scores, labels)

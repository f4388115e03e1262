# source: pytorch/pytorch#126533
# mechanism: torch.Tensor() does not follow the default device, as torch.tensor() does
# phase: loss; aten::mul
# expect: raises
import torch


class OrdinalLoss(torch.nn.Module):
    def __init__(self, penalties):
        super().__init__()
        self.penalties = torch.Tensor(penalties)  # ROOT

    def forward(self, logits, ranks):
        passed = torch.arange(logits.shape[1]) < ranks.unsqueeze(1)
        error = torch.nn.functional.binary_cross_entropy_with_logits(logits, passed.float(), reduction="none")
        return (error * self.penalties).mean()  # RAISE  # ALSO


class Grader(torch.nn.Module):
    def __init__(self, features, ranks):
        super().__init__()
        self.score = torch.nn.Linear(features, 1, bias=False)
        self.steps = torch.nn.Parameter(torch.linspace(1.0, -1.0, ranks - 1))

    def forward(self, x):
        return self.score(x) + self.steps


torch.set_default_device("cuda")
model, criterion = Grader(5, ranks=4), OrdinalLoss([1.0, 2.0, 4.0])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    x, ranks = torch.randn(8, 5), torch.randint(0, 4, (8,))
    optimizer.zero_grad()
    criterion(model(x), ranks).backward()
    optimizer.step()

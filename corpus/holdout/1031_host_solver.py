# source: Future-House/ldp#97
# mechanism: a custom autograd function evaluates a host routine and returns the gradient of its input on the host, while the input is on the GPU
# expect: raises
import torch
from torch import nn


def project_simplex(row):
    ordered = sorted(row, reverse=True)
    running, threshold = 0.0, 0.0
    for count, value in enumerate(ordered, start=1):
        running += value
        candidate = (running - 1.0) / count
        if value > candidate:
            threshold = candidate
    return [max(v - threshold, 0.0) for v in row]


class HostRoutine:
    def __init__(self, routine):
        self.routine = routine

    def run(self, tensor):
        return torch.tensor([self.routine(row) for row in tensor.tolist()], dtype=tensor.dtype)

    def pullback(self, output, grad):
        active = (output > 0).to(grad.dtype)
        centred = grad - (grad * active).sum(-1, keepdim=True) / active.sum(-1, keepdim=True).clamp(min=1)
        return centred * active


class HostFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, routine):
        output = routine.run(x.detach())
        ctx.routine = routine
        ctx.save_for_backward(output)
        return output.to(x.device)

    @staticmethod
    def backward(ctx, grad_output):
        (output,) = ctx.saved_tensors
        grad = ctx.routine.pullback(output, grad_output.to(output.device))  # ALSO
        return grad, None  # ROOT


class SparseGate(nn.Module):
    def __init__(self, dim, experts):
        super().__init__()
        self.logits = nn.Linear(dim, experts)
        self.routine = HostRoutine(project_simplex)

    def forward(self, x):
        return HostFunction.apply(self.logits(x), self.routine)


class Mixture(nn.Module):
    def __init__(self, dim=6, experts=4):
        super().__init__()
        self.gate = SparseGate(dim, experts)
        self.experts = nn.ModuleList(nn.Linear(dim, 1) for _ in range(experts))

    def forward(self, x):
        outputs = torch.cat([expert(x) for expert in self.experts], dim=-1)
        return (outputs * self.gate(x)).sum(-1)


class Trainer:
    def __init__(self, model, device, lr=0.05):
        self.device = device
        self.model = model.to(device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=lr)

    def step(self, x, y):
        x, y = x.to(self.device), y.to(self.device)
        loss = (self.model(x) - y).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()  # RAISE
        self.optimizer.step()
        return loss.item()


def main():
    torch.manual_seed(0)
    trainer = Trainer(Mixture(), torch.device("cuda"))
    for _ in range(3):
        x = torch.randn(10, 6)
        print(trainer.step(x, x[:, 0].abs()))


if __name__ == "__main__":
    main()

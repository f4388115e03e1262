# source: meta-pytorch/captum#163
# mechanism: per-example sums of a GPU tensor are collected with torch.tensor, which makes a CPU tensor that is then subtracted from GPU outputs
# expect: raises
import torch
from torch import nn


class ToyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin1 = nn.Linear(3, 6)
        self.lin2 = nn.Linear(6, 2)

    def forward(self, x):
        return self.lin2(torch.relu(self.lin1(x)))


def format_tuple(value):
    return value if isinstance(value, tuple) else (value,)


def run_forward(forward_func, inputs, target):
    out = forward_func(*inputs)
    return out[:, target]


def sum_rows(t):
    return t.reshape(t.shape[0], -1).sum(1)


class Attribution:
    def __init__(self, forward_func):
        self.forward_func = forward_func

    def compute_convergence_delta(self, attributions, start, end, target):
        with torch.no_grad():
            f_start = run_forward(self.forward_func, format_tuple(start), target)
            f_end = run_forward(self.forward_func, format_tuple(end), target)
        row_sums = [sum_rows(a) for a in format_tuple(attributions)]
        totals = torch.tensor([sum(parts).item() for parts in zip(*row_sums)])  # ROOT
        return totals - (f_end - f_start)  # RAISE # ALSO


class IntegratedGradients(Attribution):
    def attribute(self, inputs, baselines=None, target=0, n_steps=8, return_convergence_delta=False):
        inputs = format_tuple(inputs)
        if baselines is None:
            baselines = tuple(torch.zeros_like(i) for i in inputs)
        baselines = format_tuple(baselines)
        alphas = torch.linspace(0, 1, n_steps, device=inputs[0].device)
        total = [torch.zeros_like(i) for i in inputs]
        for alpha in alphas:
            point = tuple((b + alpha * (i - b)).requires_grad_() for i, b in zip(inputs, baselines))
            out = run_forward(self.forward_func, point, target).sum()
            for acc, grad in zip(total, torch.autograd.grad(out, point)):
                acc += grad / n_steps
        attributions = tuple(t * (i - b) for t, i, b in zip(total, inputs, baselines))
        result = attributions if len(attributions) > 1 else attributions[0]
        if not return_convergence_delta:
            return result
        return result, self.compute_convergence_delta(attributions, baselines, inputs, target)


def explain(model, batch, device):
    model.eval()
    ig = IntegratedGradients(model)
    quick = ig.attribute(batch, target=1)
    print("quick", quick.abs().mean().item())
    baseline = torch.zeros(batch.shape, device=device)
    return ig.attribute(batch, baseline, target=0, return_convergence_delta=True)


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = ToyModel().to(device)
    batch = torch.rand(2, 3).to(device)
    attributions, delta = explain(model, batch, device)
    print(attributions.shape, delta.abs().max().item())


if __name__ == "__main__":
    main()

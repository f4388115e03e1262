# source: davda54/sam PR#5
# mechanism: an optimizer stacks the gradient norms of all its parameters, some of which live on the second GPU
# phase: optimizer step; aten::stack or aten::cat
# expect: raises
# needs: 2 GPUs
import torch

first, second = torch.device("cuda", 0), torch.device("cuda", 1)


class SharpnessAware(torch.optim.Optimizer):
    def __init__(self, params, base, rho=0.05):
        super().__init__(params, {"rho": rho})
        self.base = base(self.param_groups)

    def gradient_norm(self):
        norms = []
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    norms.append(p.grad.norm(p=2))  # ROOT
        return torch.stack(norms).norm(p=2)  # RAISE  # ALSO

    @torch.no_grad()
    def ascend(self):
        scale = self.param_groups[0]["rho"] / (self.gradient_norm() + 1e-12)
        for group in self.param_groups:
            for p in group["params"]:
                p.add_(p.grad * scale.to(p.device))


class TwoStages(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.bottom = torch.nn.Linear(4, 8).to(first)
        self.top = torch.nn.Linear(8, 2).to(second)

    def forward(self, x):
        return self.top(self.bottom(x).relu().to(second))


model = TwoStages()
optimizer = SharpnessAware(model.parameters(), lambda groups: torch.optim.SGD(groups, lr=0.1))
for _ in range(2):
    labels = torch.randint(0, 2, (6,), device=second)
    loss = torch.nn.functional.cross_entropy(model(torch.randn(6, 4, device=first)), labels)
    loss.backward()
    optimizer.ascend()
    optimizer.zero_grad()

# source: facebookresearch/fairchem#813
# mechanism: a sum of one element is read to the host when a run is resumed; a number of the GPU is added to it in place
# phase: optimizer step; aten::add_
# expect: raises
import io

import torch


class AdaNorm(torch.optim.Optimizer):
    """Its rate falls with the squared norms of all gradients so far."""

    def __init__(self, params, lr=1.0):
        super().__init__(params, {"lr": lr})
        first = self.param_groups[0]["params"][0]
        self.total = torch.full((1,), 1e-2, device=first.device)

    def save(self, file):
        torch.save(self.total, file)

    def restore(self, file):
        self.total = torch.load(file, map_location="cpu")  # ROOT

    @torch.no_grad()
    def step(self, closure):
        with torch.enable_grad():
            loss = closure()
        moved = [p for group in self.param_groups for p in group["params"] if p.grad is not None]
        self.total += torch.stack([p.grad.square().sum() for p in moved]).sum()  # RAISE
        rate = self.total.rsqrt()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.sub_(group["lr"] * rate * p.grad)
        return loss


def fit(optimizer, weight, steps):
    x = torch.randn(32, weight.shape[0], device=weight.device)
    y = x.sum(1)

    def closure():
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(x @ weight, y)
        loss.backward()
        return loss

    return [float(optimizer.step(closure)) for _ in range(steps)]


saved = io.BytesIO()
weight = torch.zeros(5, device="cuda", requires_grad=True)
optimizer = AdaNorm([weight])
print(fit(optimizer, weight, 4))
optimizer.save(saved)
saved.seek(0)
resumed = AdaNorm([weight], lr=0.5)
resumed.restore(saved)
print(fit(resumed, weight, 4))

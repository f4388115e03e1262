# source: marlbenchmark/on-policy PR#107
# mechanism: keyword arguments for conversions are kept from the constructor, which was told no device; the module moves
# phase: loss; aten::add_
# expect: raises
import torch
from torch import nn


class ReturnNorm(nn.Module):
    def __init__(self, width, decay=0.99, device=torch.device("cpu")):
        super().__init__()
        self.decay = decay
        self.options = dict(dtype=torch.float32, device=device)
        self.mean = nn.Parameter(torch.zeros(width, **self.options), requires_grad=False)

    @torch.no_grad()
    def update(self, returns):
        returns = returns.to(**self.options)  # ALSO
        self.mean.mul_(self.decay).add_(returns.mean(0) * (1 - self.decay))  # RAISE


class Trainer:
    def __init__(self, critic, device):
        self.critic = critic.to(device)
        self.normalizer = ReturnNorm(1).to(device)  # ROOT

    def step(self, observed, returns):
        self.normalizer.update(returns)
        return nn.functional.huber_loss(self.critic(observed), returns)


trainer = Trainer(nn.Linear(6, 1), torch.device("cuda"))
trainer.step(torch.randn(16, 6, device="cuda"), torch.randn(16, 1, device="cuda"))

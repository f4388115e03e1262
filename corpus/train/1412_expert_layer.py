# source: lucidrains/mixture-of-experts#5
# mechanism: a mixture of experts is made apart from the model it stands beside, and is not moved with it
# expect: raises
import torch
import torch.nn.functional as F
from torch import nn


class Gate(nn.Module):
    def __init__(self, dim, experts, k=2):
        super().__init__()
        self.w_gate = nn.Parameter(torch.randn(dim, experts) * 0.1)
        self.w_noise = nn.Parameter(torch.zeros(dim, experts))
        self.k = k

    def forward(self, x):
        clean = x @ self.w_gate  # RAISE
        if self.training:
            clean = clean + torch.randn_like(clean) * F.softplus(x @ self.w_noise)
        top, index = clean.topk(self.k, dim=-1)
        return torch.zeros_like(clean).scatter(1, index, top.softmax(-1))


class Experts(nn.Module):
    def __init__(self, dim, hidden, count):
        super().__init__()
        self.w1 = nn.Parameter(torch.randn(count, dim, hidden) * 0.1)
        self.w2 = nn.Parameter(torch.randn(count, hidden, dim) * 0.1)

    def forward(self, x, gates):
        out = torch.einsum("nd,edh->neh", x, self.w1).relu()
        out = torch.einsum("neh,ehd->ned", out, self.w2)
        return (out * gates.unsqueeze(-1)).sum(1)


class MoE(nn.Module):
    def __init__(self, dim, num_experts=4, hidden_dim=16, loss_coef=1e-2):
        super().__init__()
        self.gate = Gate(dim, num_experts)
        self.experts = Experts(dim, hidden_dim, num_experts)
        self.loss_coef = loss_coef

    def forward(self, x):
        flat = x.flatten(0, -2)
        gates = self.gate(flat)
        importance = gates.sum(0)
        loss = importance.var() / (importance.mean() ** 2 + 1e-10)
        return self.experts(flat, gates).view_as(x), loss * self.loss_coef


class Encoder(nn.Module):
    def __init__(self, features, dim):
        super().__init__()
        self.proj = nn.Linear(features, dim)
        self.head = nn.Linear(dim, 1)


class Runner:
    def __init__(self, features=6, dim=8, lr=1e-3):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.encoder = Encoder(features, dim).to(self.device)
        self.moe = MoE(dim)  # ROOT
        params = list(self.encoder.parameters()) + list(self.moe.parameters())
        self.optimizer = torch.optim.Adam(params, lr=lr)

    def step(self, x, y):
        x, y = x.to(self.device), y.to(self.device)
        hidden = torch.relu(self.encoder.proj(x))
        hidden, aux = self.moe(hidden)
        loss = F.mse_loss(self.encoder.head(hidden).squeeze(-1), y) + aux
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


if __name__ == "__main__":
    runner = Runner()
    for _ in range(2):
        print(runner.step(torch.randn(3, 5, 6), torch.randn(3, 5)))

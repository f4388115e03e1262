# source: pytorch/rl#4241
# mechanism: a return normalizer that was not moved keeps its quantile levels in a buffer on the CPU and takes quantiles of returns on the GPU
# expect: raises
import torch
from torch import nn


class PercentileNorm(nn.Module):
    def __init__(self, low=0.05, high=0.95, decay=0.99, min_scale=1.0):
        super().__init__()
        self.decay = decay
        self.min_scale = min_scale
        self.register_buffer("_q", torch.tensor([low, high]))
        self.register_buffer("_range", torch.zeros(()))
        self.register_buffer("_ready", torch.zeros((), dtype=torch.bool))

    @torch.no_grad()
    def update(self, value):
        flat = value.detach().flatten().float()
        bounds = torch.quantile(flat, self._q)  # RAISE # ROOT
        spread = (bounds[1] - bounds[0]).to(self._range.device)
        if not bool(self._ready):
            self._range.copy_(spread)
            self._ready.fill_(True)
        else:
            self._range.mul_(self.decay).add_(spread, alpha=1 - self.decay)

    def scale(self, like):
        return self._range.clamp(min=self.min_scale).to(like.device)


class Actor(nn.Module):
    def __init__(self, obs, actions):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(obs, 16), nn.Tanh(), nn.Linear(16, actions))

    def dist(self, obs):
        return torch.distributions.Categorical(logits=self.net(obs))


class ActorLoss(nn.Module):
    def __init__(self, actor, value, gamma=0.97, lmbda=0.9, entropy_bonus=1e-3):
        super().__init__()
        self.actor = actor
        self.value = value
        self.gamma, self.lmbda = gamma, lmbda
        self.entropy_bonus = entropy_bonus
        self.return_norm = PercentileNorm()  # ALSO

    def lambda_returns(self, reward, values):
        out = []
        last = values[-1]
        for t in reversed(range(reward.shape[0])):
            last = reward[t] + self.gamma * ((1 - self.lmbda) * values[t + 1] + self.lmbda * last)
            out.append(last)
        return torch.stack(out[::-1])

    def forward(self, obs, reward):
        dist = self.actor.dist(obs[:-1])
        action = dist.sample()
        with torch.no_grad():
            values = self.value(obs).squeeze(-1)
            returns = self.lambda_returns(reward, values)
        self.return_norm.update(returns)
        advantage = (returns - values[:-1]) / self.return_norm.scale(returns)
        return -(dist.log_prob(action) * advantage + self.entropy_bonus * dist.entropy()).mean()


class Imagination:
    def __init__(self, obs_dim, device, horizon=5, batch=4):
        self.shape = (horizon + 1, batch, obs_dim)
        self.device = device

    def rollout(self):
        obs = torch.randn(self.shape, device=self.device)
        return obs, obs[1:].sum(-1).tanh()


def main():
    torch.manual_seed(0)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    actor = Actor(3, 2).to(device)
    value = nn.Linear(3, 1).to(device)
    loss_module = ActorLoss(actor, value)  # ALSO
    optimizer = torch.optim.Adam(actor.parameters(), lr=1e-2)
    world = Imagination(3, device)
    for _ in range(3):
        loss = loss_module(*world.rollout())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("loss %.4f" % loss.item())


if __name__ == "__main__":
    main()

# source: marlbenchmark/on-policy#107
# mechanism: the value normalizer is moved with .to() but casts its inputs with options fixed by its device argument, which was left at the CPU default
# expect: raises
import torch
from torch import nn


class ValueNorm(nn.Module):
    def __init__(self, input_shape, norm_axes=1, beta=0.99, epsilon=1e-5, device=torch.device("cpu")):  # ALSO
        super().__init__()
        self.norm_axes = norm_axes
        self.beta = beta
        self.epsilon = epsilon
        self.tpdv = dict(dtype=torch.float32, device=device)  # ALSO
        self.running_mean = nn.Parameter(torch.zeros(input_shape), requires_grad=False).to(**self.tpdv)
        self.running_mean_sq = nn.Parameter(torch.zeros(input_shape), requires_grad=False).to(**self.tpdv)
        self.debiasing_term = nn.Parameter(torch.tensor(0.0), requires_grad=False).to(**self.tpdv)

    def running_stats(self):
        debias = self.debiasing_term.clamp(min=self.epsilon)
        mean = self.running_mean / debias
        var = (self.running_mean_sq / debias - mean ** 2).clamp(min=1e-2)
        return mean, var

    @torch.no_grad()
    def update(self, values):
        values = values.to(**self.tpdv)
        axes = tuple(range(self.norm_axes))
        self.running_mean.mul_(self.beta).add_(values.mean(dim=axes) * (1.0 - self.beta))  # RAISE
        self.running_mean_sq.mul_(self.beta).add_((values ** 2).mean(dim=axes) * (1.0 - self.beta))
        self.debiasing_term.mul_(self.beta).add_(1.0 - self.beta)

    def normalize(self, values):
        mean, var = self.running_stats()
        return (values.to(**self.tpdv) - mean) / var.sqrt()


class Critic(nn.Module):
    def __init__(self, obs_dim, hidden=16):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(obs_dim, hidden), nn.Tanh(), nn.Linear(hidden, 1))

    def forward(self, obs):
        return self.net(obs)


class PPOTrainer:
    def __init__(self, args, device):
        self.args = args
        self.device = device
        self.critic = Critic(args["obs_dim"]).to(device)
        self.optimizer = torch.optim.Adam(self.critic.parameters(), lr=args["lr"])
        self.value_normalizer = None
        if args["use_valuenorm"]:
            self.value_normalizer = ValueNorm(1).to(self.device)  # ROOT

    def value_loss(self, values, old_values, returns):
        clipped = old_values + (values - old_values).clamp(-self.args["clip"], self.args["clip"])
        if self.value_normalizer is not None:
            self.value_normalizer.update(returns)
            returns = self.value_normalizer.normalize(returns)
        errors = torch.stack([(returns - clipped) ** 2, (returns - values) ** 2])
        return errors.max(0).values.mean()

    def train(self, obs, old_values, returns):
        obs, old_values, returns = (t.to(self.device) for t in (obs, old_values, returns))
        loss = self.value_loss(self.critic(obs), old_values, returns)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def rollout(count, obs_dim):
    obs = torch.randn(count, obs_dim)
    return obs, torch.zeros(count, 1), obs.sum(-1, keepdim=True) * 10


def main():
    torch.manual_seed(0)
    args = {"obs_dim": 4, "lr": 5e-3, "clip": 0.2, "use_valuenorm": True}
    trainer = PPOTrainer(args, torch.device("cuda", 0))
    print([trainer.train(*rollout(16, 4)) for _ in range(3)])


if __name__ == "__main__":
    main()

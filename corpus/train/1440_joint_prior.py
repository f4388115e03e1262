# source: sbi-dev/sbi#1505
# mechanism: a prior of independent parts has a to() that notes the device and does not move its parts
# expect: raises
import torch
from torch import nn
from torch.distributions import Exponential, Independent, Uniform


class BoxPrior:
    def __init__(self, low, high, device="cpu"):
        self.low, self.high = torch.as_tensor(low), torch.as_tensor(high)
        self.to(device)

    def to(self, device):
        self.device = device
        self.low, self.high = self.low.to(device), self.high.to(device)
        self.dist = Independent(Uniform(self.low, self.high, validate_args=False), 1, validate_args=False)
        return self

    def sample(self, shape):
        return self.dist.sample(shape)

    def log_prob(self, theta):
        return self.dist.log_prob(theta)


class RatePrior(BoxPrior):
    def __init__(self, rate, device="cpu"):
        self.rate = torch.as_tensor(rate)
        self.to(device)

    def to(self, device):
        self.device = device
        self.rate = self.rate.to(device)
        self.dist = Independent(Exponential(self.rate, validate_args=False), 1, validate_args=False)
        return self


class MultipleIndependent:
    def __init__(self, parts, dims):
        self.parts, self.dims = parts, dims
        self.device = parts[0].device

    def to(self, device):
        self.device = device  # ROOT
        return self  # ALSO

    def sample(self, shape):
        return torch.cat([p.sample(shape) for p in self.parts], dim=-1).to(self.device)

    def log_prob(self, theta):
        pieces = theta.split(self.dims, dim=-1)
        return torch.stack([p.log_prob(x) for p, x in zip(self.parts, pieces)]).sum(0)


class GaussianEstimator(nn.Module):
    def __init__(self, x_dim, theta_dim):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(x_dim, 16), nn.Tanh(), nn.Linear(16, 2 * theta_dim))

    def forward(self, theta, x):
        mean, log_std = self.net(x).chunk(2, dim=-1)
        return (-0.5 * ((theta - mean) / log_std.exp()) ** 2 - log_std).sum(-1)


def box_log_prob(part, theta):
    inside = (theta >= part.low) & (theta <= part.high)  # RAISE
    return torch.where(inside.all(-1), 0.0, -1e6)


class Trainer:
    def __init__(self, prior, device):
        self.device = torch.device(device)
        self.prior = prior.to(self.device)

    def simulate(self, count):
        theta = self.prior.sample((count,))
        x = theta.cumsum(-1) + 0.1 * torch.randn(theta.shape, device=theta.device)
        return theta, x

    def train(self, steps=2):
        theta, x = self.simulate(32)
        net = GaussianEstimator(x.shape[1], theta.shape[1]).to(self.device)
        optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
        for _ in range(steps):
            loss = -net(theta, x).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return net

    @torch.no_grad()
    def importance(self, net, x, count=8):
        theta = self.prior.sample((count,))
        ratio = net(theta, x.to(self.device).expand(count, -1))
        return (ratio + box_log_prob(self.prior.parts[0], theta[:, :2])).softmax(0), theta


if __name__ == "__main__":
    prior = MultipleIndependent([BoxPrior([0.0, 0.0], [1.0, 2.0]), RatePrior([1.5])], [2, 1])
    trainer = Trainer(prior, "cuda" if torch.cuda.is_available() else "cpu")
    weights, theta = trainer.importance(trainer.train(), torch.rand(1, 3))
    print((weights[:, None] * theta).sum(0))

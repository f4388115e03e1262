# source: cornellius-gp/gpytorch#2581
# mechanism: a prior that is a module moves its buffers, and the base distribution that was made from the old ones stays behind
# expect: raises
import torch
from torch import nn
from torch.distributions import LogNormal, Normal


class Prior(nn.Module):
    def __init__(self, **params):
        super().__init__()
        for name, value in params.items():
            self.register_buffer(name, torch.as_tensor(float(value)).reshape(1))
        self.refresh()

    def refresh(self):
        raise NotImplementedError

    def load_state_dict(self, state, strict=True):
        out = super().load_state_dict(state, strict)
        self.refresh()
        return out

    def _apply(self, fn):
        module = super()._apply(fn)  # ROOT
        return module  # ALSO

    def log_prob(self, x):
        return self.base.log_prob(x)  # RAISE

    def sample(self, shape):
        return self.base.sample(shape)


class NormalPrior(Prior):
    def refresh(self):
        self.base = Normal(self.loc, self.scale, validate_args=False)


class LogNormalPrior(Prior):
    def refresh(self):
        self.base = LogNormal(self.loc, self.scale, validate_args=False)


class RBFKernel(nn.Module):
    def __init__(self, prior):
        super().__init__()
        self.raw_lengthscale = nn.Parameter(torch.zeros(1))
        self.prior = prior

    @property
    def lengthscale(self):
        return nn.functional.softplus(self.raw_lengthscale)

    def forward(self, a, b):
        return torch.exp(-0.5 * torch.cdist(a, b) ** 2 / self.lengthscale**2)


class ExactGP(nn.Module):
    def __init__(self, kernel, noise_prior):
        super().__init__()
        self.kernel = kernel
        self.log_noise = nn.Parameter(torch.tensor([-1.0]))
        self.noise_prior = noise_prior

    def neg_mll(self, x, y):
        cov = self.kernel(x, x) + self.log_noise.exp() * torch.eye(len(x), device=x.device)
        chol = torch.linalg.cholesky(cov)
        alpha = torch.cholesky_solve(y.unsqueeze(-1), chol).squeeze(-1)
        return 0.5 * (y * alpha).sum() + chol.diagonal().log().sum()

    def log_prior(self):
        total = self.kernel.prior.log_prob(self.kernel.lengthscale).sum()
        return total + self.noise_prior.log_prob(self.log_noise).sum()


def fit(model, x, y, steps=2):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(steps):
        loss = (model.neg_mll(x, y) - model.log_prior()) / len(x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


if __name__ == "__main__":
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    x = torch.linspace(0, 1, 8).unsqueeze(-1)
    y = torch.sin(6 * x).squeeze(-1)
    kernel = RBFKernel(LogNormalPrior(loc=0.0, scale=1.0))
    model = ExactGP(kernel, NormalPrior(loc=-1.0, scale=1.0)).to(device)
    print(fit(model, x.to(device), y.to(device)))

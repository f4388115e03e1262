# source: pyro-ppl/pyro#1850
# mechanism: an automatic guide allocates its variational parameters on the host although the traced model's latents are on the GPU
# expect: raises
from collections import OrderedDict
from typing import Callable, Dict

import torch
from torch import nn
from torch.distributions import Normal


class Trace:
    def __init__(self):
        self.nodes: "OrderedDict[str, dict]" = OrderedDict()

    def log_prob_sum(self) -> torch.Tensor:
        return sum(node["fn"].log_prob(node["value"]).sum() for node in self.nodes.values())

    def latents(self) -> Dict[str, dict]:
        return {k: n for k, n in self.nodes.items() if not n["observed"]}


class Tracer:
    """Runs a model and records its sample statements."""

    def __init__(self, model: Callable, condition: Dict[str, torch.Tensor] = None):
        self.model, self.condition = model, condition or {}

    def get_trace(self, *args) -> Trace:
        trace = Trace()

        def sample(name, fn, obs=None):
            value = obs if obs is not None else self.condition.get(name)
            if value is None:
                value = fn.sample()
            trace.nodes[name] = {"fn": fn, "value": value, "observed": obs is not None}
            return value

        self.model(sample, *args)
        return trace


class AutoDiagonalNormal(nn.Module):
    def __init__(self, model: Callable, init_scale: float = 0.1):
        super().__init__()
        self.model, self.init_scale = model, init_scale
        self.shapes: "OrderedDict[str, torch.Size]" = OrderedDict()

    def setup(self, *args) -> None:
        latents = Tracer(self.model).get_trace(*args).latents()
        self.shapes.update({name: node["value"].shape for name, node in latents.items()})
        latent_dim = sum(shape.numel() for shape in self.shapes.values())
        self.loc = nn.Parameter(torch.zeros(latent_dim))  # ROOT
        self.log_scale = nn.Parameter(torch.full_like(self.loc, self.init_scale).log())

    def unpack(self, flat: torch.Tensor) -> Dict[str, torch.Tensor]:
        out, pos = {}, 0
        for name, shape in self.shapes.items():
            out[name] = flat[pos: pos + shape.numel()].view(shape)
            pos += shape.numel()
        return out

    def forward(self, *args):
        if not self.shapes:
            self.setup(*args)
        dist = Normal(self.loc, self.log_scale.exp())
        flat = dist.rsample()
        return self.unpack(flat), dist.log_prob(flat).sum()


class SVI:
    def __init__(self, model: Callable, guide: AutoDiagonalNormal, lr: float):
        self.model, self.guide, self.lr, self.optim = model, guide, lr, None

    def step(self, *args) -> float:
        values, log_q = self.guide(*args)
        log_p = Tracer(self.model, values).get_trace(*args).log_prob_sum()
        loss = log_q - log_p
        if self.optim is None:
            self.optim = torch.optim.Adam(self.guide.parameters(), lr=self.lr)
        self.optim.zero_grad()
        loss.backward()
        self.optim.step()
        return loss.item()


def regression(sample, x: torch.Tensor, y: torch.Tensor) -> None:
    zero, one = x.new_zeros(x.shape[1]), x.new_ones(x.shape[1])
    weight = sample("weight", Normal(zero, one))
    bias = sample("bias", Normal(x.new_zeros(()), x.new_ones(())))
    mean = x @ weight + bias  # RAISE
    sample("obs", Normal(mean, 0.1 * torch.ones_like(mean)), obs=y)


def main() -> None:
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    x = torch.randn(30, 3).to(device)
    y = x @ torch.tensor([1.0, -2.0, 0.5], device=device)
    svi = SVI(regression, AutoDiagonalNormal(regression), lr=0.05)
    for _ in range(4):
        loss = svi.step(x, y)
    print("loss", loss)


if __name__ == "__main__":
    main()

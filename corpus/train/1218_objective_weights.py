# source: xopt-org/Xopt#311
# mechanism: a function that takes the tensor options builds the objective's weights by a helper to which it does not hand them on
# expect: raises
from dataclasses import dataclass, field
from typing import Callable, Dict, List

import torch
from torch import nn

TensorOptions = Dict[str, object]


@dataclass
class VOCS:
    variables: Dict[str, List[float]]
    objectives: Dict[str, str]
    constants: Dict[str, float] = field(default_factory=dict)

    @property
    def objective_names(self) -> List[str]:
        return sorted(self.objectives)

    @property
    def bounds(self) -> List[List[float]]:
        return [self.variables[k] for k in sorted(self.variables)]


def set_objective_weights(vocs: VOCS, dtype=torch.double, device="cpu") -> torch.Tensor:
    weights = torch.zeros(len(vocs.objectives), dtype=dtype, device=device)
    for i, name in enumerate(vocs.objective_names):
        weights[i] = {"MINIMIZE": -1.0, "MAXIMIZE": 1.0}[vocs.objectives[name]]
    return weights


def create_mc_objective(vocs: VOCS, tkwargs: TensorOptions) -> Callable[[torch.Tensor], torch.Tensor]:
    weights = set_objective_weights(vocs)  # ROOT
    nan_value = torch.full((), -1e9, **tkwargs)

    def obj_callable(samples: torch.Tensor) -> torch.Tensor:
        values = samples @ weights  # RAISE # ALSO
        return torch.where(torch.isnan(values), nan_value, values)

    return obj_callable


class LinearSurrogate(nn.Module):
    """Ridge features with an output for each objective."""

    def __init__(self, dim: int, n_out: int, n_features: int = 32):
        super().__init__()
        self.register_buffer("freq", torch.randn(dim, n_features))
        self.register_buffer("phase", torch.rand(n_features) * 6.28)
        self.head = nn.Linear(n_features, n_out)

    def features(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cos(x @ self.freq + self.phase)

    def fit(self, x: torch.Tensor, y: torch.Tensor, reg: float = 1e-2) -> None:
        f = self.features(x)
        gram = f.T @ f + reg * torch.eye(f.shape[1], dtype=f.dtype, device=f.device)
        with torch.no_grad():
            self.head.weight.copy_(torch.linalg.solve(gram, f.T @ (y - y.mean(0))).T)
            self.head.bias.copy_(y.mean(0))

    def sample(self, x: torch.Tensor, n: int, noise: float = 0.05) -> torch.Tensor:
        mean = self.head(self.features(x))
        return mean + noise * torch.randn(n, *mean.shape, dtype=mean.dtype, device=mean.device)


class BayesianGenerator:
    def __init__(self, vocs: VOCS, use_cuda: bool = False):
        self.vocs, self.use_cuda = vocs, use_cuda
        self.surrogate = LinearSurrogate(len(vocs.variables), len(vocs.objectives))

    @property
    def tkwargs(self) -> TensorOptions:
        return {"dtype": torch.double, "device": "cuda:0" if self.use_cuda else "cpu"}

    def generate(self, data: Dict[str, List[List[float]]], n_mc: int = 16) -> List[float]:
        x = torch.tensor(data["x"], **self.tkwargs)
        y = torch.tensor(data["y"], **self.tkwargs)
        low, high = torch.tensor(self.vocs.bounds, **self.tkwargs).T
        self.surrogate.to(**self.tkwargs).fit((x - low) / (high - low), y)
        objective = create_mc_objective(self.vocs, self.tkwargs)
        candidates = torch.rand(40, len(low), **self.tkwargs)
        with torch.no_grad():
            utility = objective(self.surrogate.sample(candidates, n_mc)).mean(0)
        return (low + candidates[utility.argmax()] * (high - low)).tolist()


def main() -> None:
    vocs = VOCS({"k1": [-2.0, 2.0], "k2": [0.0, 5.0]}, {"size": "MINIMIZE", "charge": "MAXIMIZE"})
    generator = BayesianGenerator(vocs, use_cuda=torch.cuda.is_available())
    data = {
        "x": [[-1.0, 1.0], [0.5, 2.0], [1.5, 4.0], [0.0, 3.0]],
        "y": [[1.0, 0.2], [0.4, 0.9], [1.9, 0.7], [0.1, 0.8]],
    }
    print(generator.generate(data))


if __name__ == "__main__":
    main()

# source: thu-ml/tianshou#170
# mechanism: numbers of a table stay an array of NumPy; the error of the model, which is differentiated, is computed with it
# phase: loss; Tensor.__array__
# expect: raises
import numpy as np
import torch
from torch import nn


class Stations:
    def __init__(self, count):
        rng = np.random.default_rng(1)
        self.heights, self.trust = rng.uniform(0, 3, (count, 2)), rng.uniform(0.5, 1, count)
        self.rain = rng.gamma(2.0, size=count)

    def choose(self, count):
        chosen = np.arange(count)
        return {"heights": self.heights[chosen], "rain": self.rain[chosen], "trust": self.trust[chosen]}


def tensor(array):
    return torch.as_tensor(array, dtype=torch.float32, device="cuda:0")


class Fit:
    def __init__(self):
        self.model = nn.Linear(2, 1).to("cuda:0")

    def weighted(self, error, trust):
        return (error.abs() * trust).sum()  # RAISE

    def loss(self, table):
        error = self.model(tensor(table["heights"])).squeeze(1) - tensor(table["rain"])
        trust = table.get("trust")  # ROOT
        return self.weighted(error, trust)  # ALSO


Fit().loss(Stations(9).choose(4)).backward()

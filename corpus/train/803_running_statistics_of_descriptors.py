# source: luigibonati/mlcolvar PR#185
# mechanism: [plain attribute tensor] accumulator object starts its running mean and variance on CPU and is then fed batches of a dataset that lives on CUDA
# phase: setup from data; failing op: aten::sub
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class Statistics:
    def __init__(self):
        self.count = 0

    def reset(self, n):
        self.state = {k: torch.zeros(n) for k in ("mean", "m2")}  # ROOT

    def update(self, x):
        if self.count == 0:
            self.reset(x.shape[1])  # ALSO
        mean, b = x.mean(0), x.shape[0]
        delta = mean - self.state["mean"]  # RAISE
        self.count += b
        self.state["mean"] += delta * b / self.count
        self.state["m2"] += ((x - mean) ** 2).sum(0) + delta ** 2 * b * (self.count - b) / self.count


class Normalization(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.register_buffer("mean", torch.zeros(n))
        self.register_buffer("range", torch.ones(n))

    def setup_from(self, batches):
        stats = Statistics()
        for x in batches:
            stats.update(x)
        self.mean.copy_(stats.state["mean"])
        self.range.copy_((stats.state["m2"] / stats.count).sqrt())


data = torch.randn(32, 3, device=dev)
Normalization(3).to(dev).setup_from(data.split(8))

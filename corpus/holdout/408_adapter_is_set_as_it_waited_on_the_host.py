# source: huggingface/peft#256
# mechanism: adapters wait on the host; the one that is set as a model's parameters is not moved
# phase: forward; aten::linear
# expect: raises
import torch
from torch import nn


class Adapted(nn.Module):
    def __init__(self, base, rank=2):
        super().__init__()
        self.base = base
        self.down = nn.Parameter(torch.zeros(rank, base.in_features))
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        low = nn.functional.linear(x, self.down)  # RAISE
        return self.base(x) + nn.functional.linear(low, self.up)


def saved(model):
    return {name: p.detach().cpu().clone() for name, p in model.named_parameters() if "base" not in name}


class Server:
    def __init__(self, model):
        self.model, self.adapters = model, {}

    def activate(self, name):
        for path, value in self.adapters[name].items():
            module, leaf = path.rsplit(".", 1)
            setattr(self.model.get_submodule(module), leaf, nn.Parameter(value))  # ROOT


server = Server(nn.Sequential(Adapted(nn.Linear(4, 8)), nn.ReLU(), Adapted(nn.Linear(8, 2))).to("cuda"))
x = torch.rand(3, 4, device="cuda")
server.model(x)
server.adapters["first"] = {name: torch.rand_like(value) for name, value in saved(server.model).items()}
server.activate("first")
server.model(x)

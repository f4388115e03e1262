# source: Lightning-AI/pytorch-lightning#17820
# mechanism: the stacked weights of an ensemble are a plain dictionary, which moving the module around it does not reach
# phase: forward inside of vmap; aten::linear
# expect: raises
import copy
import torch
import torch.nn as nn
from torch.func import functional_call, stack_module_state, vmap


class Member(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, hidden), nn.SiLU())
        self.head = nn.Linear(hidden, 2)

    def forward(self, x):
        mean, logvar = self.head(self.body(x)).chunk(2, dim=-1)  # RAISE
        return mean, logvar.clamp(-5, 3)


class Dynamics(nn.Module):
    def __init__(self, inputs=5, hidden=16, members=4):
        super().__init__()
        self.normalizer = nn.BatchNorm1d(inputs, affine=False)
        models = [Member(inputs, hidden) for _ in range(members)]
        self.weights, self.buffers_ = stack_module_state(models)  # ROOT
        self.template = [copy.deepcopy(models[0]).to("meta")]

    def trainable(self):
        return list(self.weights.values())

    def forward(self, x):
        x = self.normalizer(x)

        def one(weights, buffers, batch):
            return functional_call(self.template[0], (weights, buffers), (batch,))

        return vmap(one, in_dims=(0, 0, None))(self.weights, self.buffers_, x)


def nll(mean, logvar, target):
    return ((mean - target).pow(2) * torch.exp(-logvar) + logvar).mean()


def train(steps=3):
    torch.manual_seed(0)
    device = torch.device("cuda:0")
    model = Dynamics().to(device)
    opt = torch.optim.Adam(model.trainable(), lr=1e-3)
    for _ in range(steps):
        x = torch.randn(8, 5, device=device)
        y = x.sum(-1, keepdim=True)
        loss = nll(*model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()


train()

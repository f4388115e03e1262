# source: https://github.com/huggingface/transformers/issues/28093
# mechanism: layers lie on two GPUs and each leaves a loss of its router there; the losses are added up as they are
# phase: loss; aten::add
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, width, experts):
        super().__init__()
        self.router, self.mix = nn.Linear(width, experts), nn.Linear(width, width)

    def forward(self, x):
        share = self.router(x).softmax(-1)
        balance = share.mean(0)
        return self.mix(x) * share.amax(-1, keepdim=True), balance


class Model(nn.Module):
    def __init__(self, width, places):
        super().__init__()
        self.places = places
        self.layers = nn.ModuleList(Layer(width, 4).to(place) for place in places)

    def forward(self, x):
        balances = []
        for place, layer in zip(self.places, self.layers):
            x, balance = layer(x.to(place))
            balances.append(balance.square().sum(-1, keepdim=True))  # ROOT
        return x, balances


def balance_loss(balances):
    total = balances[0]
    for one in balances[1:]:
        total = total + one  # RAISE  # ALSO
    return total.mean()


model = Model(4, [torch.device("cuda", 0), torch.device("cuda", 0), torch.device("cuda", 1)])
for _ in range(2):
    out, balances = model(torch.randn(6, 4, device="cuda:0"))
    (out.square().mean().to("cuda:0") + balance_loss(balances)).backward()

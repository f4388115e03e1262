# source: none; the shape of variational training
# mechanism: an object that is no module keeps tensors made without a device; the call that gives it moves what it gives beside it
# phase: loss; aten::sub
# expect: raises
import torch
from torch import nn
from torch.distributions import Normal


class Encoder(nn.Module):
    def __init__(self, inputs, codes):
        super().__init__()
        self.mean = nn.Linear(inputs, codes)

    def forward(self, rows):
        return Normal(self.mean(rows), 1.0)


def surprise(encoder, rows, prior):
    codes = encoder(rows).rsample()
    return -prior.log_prob(codes).sum(1).mean()  # RAISE


def train(rounds):
    encoder = Encoder(6, 2).cuda()
    prior = Normal(torch.zeros(2), torch.ones(2))  # ROOT
    optimizer = torch.optim.SGD(encoder.parameters(), lr=0.1)
    for _ in range(rounds):
        loss = surprise(encoder, torch.randn(4, 6).cuda(), prior)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


train(2)

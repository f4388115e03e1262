# source: huggingface/transformers#24696
# mechanism: of a model over two GPUs the labels are taken to where the inputs go, and are needed where the scores are
# phase: forward; aten::nll_loss_nd
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn


class Sharded(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8).to("cuda:0")
        self.last = nn.Linear(8, 3).to("cuda:1")

    def forward(self, x):
        return self.last(torch.relu(self.first(x)).to("cuda:1"))


def loss_of(scores, wanted):
    chances = scores.log_softmax(-1)
    return nn.functional.nll_loss(chances, wanted)  # RAISE  # ALSO


def train(model, batches):
    for x, y in batches:
        x = x.to(model.first.weight.device)
        y = y.to(model.first.weight.device)  # ROOT
        loss = loss_of(model(x), y)
        loss.backward()


train(Sharded(), [(torch.rand(5, 4), torch.randint(3, (5,))) for _ in range(2)])

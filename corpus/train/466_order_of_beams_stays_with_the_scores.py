# source: none; the shape of the caches of transformers that are put in a new order, layers on several devices
# mechanism: the states of a model's parts lie where the parts are; the order that they are all put in is on the last GPU alone
# phase: generation, second step; aten::index_select
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn

places = [torch.device("cuda:1"), torch.device("cuda:0")]


class Memory(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.cells = nn.ModuleList(nn.GRUCell(width, width).to(place) for place in places)
        self.judge = nn.Linear(width, 1).to(places[-1])

    def begin(self, beams, width):
        return [torch.zeros(beams, width, device=cell.weight_hh.device) for cell in self.cells]

    def forward(self, heard, states):
        following = []
        for cell, state in zip(self.cells, states):
            heard = cell(heard.to(state.device), state)
            following.append(heard)
        return self.judge(heard).squeeze(1), following

    def keep(self, states, order):
        kept = []
        for state in states:  # ALSO
            kept.append(state[order])  # ROOT # RAISE
        return kept


memory = Memory(4)
states = memory.begin(3, 4)
with torch.no_grad():
    for _ in range(2):
        scores, states = memory(torch.randn(3, 4), states)
        states = memory.keep(states, scores.argsort(descending=True))

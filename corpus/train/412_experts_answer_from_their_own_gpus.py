# source: huggingface/transformers#23385
# mechanism: experts on two GPUs take the rows that they are given to their own, and their answers are summed up elsewhere
# phase: forward; aten::mul.Tensor
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn


class Expert(nn.Module):
    def __init__(self, size, device):
        super().__init__()
        self.device = torch.device(device)
        self.up, self.down = nn.Linear(size, 8), nn.Linear(8, size)
        self.to(self.device)

    def forward(self, rows):
        rows = rows.to(self.device, non_blocking=True)
        answer = self.down(torch.relu(self.up(rows)))
        return answer * 0.5  # ROOT


class Mixture(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.gate = nn.Linear(size, 2).to("cuda:0")
        self.experts = nn.ModuleList([Expert(size, "cuda:0"), Expert(size, "cuda:1")])

    def forward(self, x):
        weights = self.gate(x).softmax(-1)
        total = torch.zeros_like(x)
        for k, expert in enumerate(self.experts):
            answer = expert(x)  # ALSO
            total += answer * weights[:, k, None]  # RAISE  # ALSO
        return total


mixture = Mixture(4)
mixture(torch.rand(3, 4, device="cuda:0"))

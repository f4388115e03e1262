# source: https://github.com/sgl-project/sglang/pull/13623
# mechanism: what its name says to be on the host is made in a block whose default device is the GPU
# phase: scheduling; failing op: aten::index.Tensor
# expect: raises
import torch
from torch import nn

device = torch.device("cuda", 0)


class Scheduler:
    def __init__(self, slots):
        self.arrived = torch.arange(slots) * 10

    def plan(self, lengths):
        with torch.device(device):
            tokens = torch.zeros(len(lengths), max(lengths), dtype=torch.long)
            starts = torch.tensor(lengths).cumsum(0)
            order_cpu = torch.tensor(sorted(range(len(lengths)), key=lengths.__getitem__))  # ROOT
        return tokens, starts, order_cpu  # ALSO

    def waiting(self, order_cpu):
        return self.arrived[order_cpu].tolist()  # RAISE  # ALSO


scheduler = Scheduler(3)
words = nn.Embedding(9, 4).to(device)
tokens, starts, order_cpu = scheduler.plan([5, 2, 3])
print(words(tokens).shape, starts.tolist())
print(scheduler.waiting(order_cpu))

# source: ROCm/pytorch#3194 (group offloading, huggingface/diffusers#13502)
# mechanism: [async copy race] the next block's weights are brought from pinned memory on a transfer stream; the block runs on the default stream, which does not wait for the transfer
# phase: inference with streamed offloading; failing op: Tensor.to(non_blocking=True) on a side stream, read on the default stream
# expect: silent
# kinds: async-race
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class Group:
    def __init__(self, block, stream):
        self.block, self.stream = block, stream
        self.host = {k: p.detach().pin_memory() for k, p in block.named_parameters()}

    def onload(self):
        with torch.cuda.stream(self.stream):
            for k, p in self.block.named_parameters():
                p.data = self.host[k].to(dev, non_blocking=True)  # ROOT

    def offload(self):
        for k, p in self.block.named_parameters():
            p.data = self.host[k]

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x):
        return x + self.fc(x).relu()  # RAISE

stream = torch.cuda.Stream(dev)
groups = [Group(Block(), stream) for _ in range(3)]
h = torch.randn(2, 8, device=dev)
with torch.no_grad():
    for g in groups:
        g.onload()
        h = g.block(h)
        torch.cuda.synchronize()
        g.offload()

# source: NVIDIA/Megatron-LM#833
# mechanism: [async copy race] checkpoint tensors are staged to the host with non_blocking copies and serialised at once, in another function, with no synchronisation in between
# phase: checkpoint save; failing op: Tensor.to('cpu', non_blocking=True) read by torch.save
# expect: silent
# kinds: async-race
import io
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class Writer:
    def __init__(self, target):
        self.target = target

    def preload(self, state):
        return {k: v.detach().to("cpu", non_blocking=True) for k, v in state.items()}  # ROOT

    def write(self, tensors):
        torch.save(tensors, self.target)  # RAISE

    def save(self, module):
        self.write(self.preload(module.state_dict()))
        return self.target.tell()

net = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 8)).to(dev)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
net(torch.randn(16, 64, device=dev)).pow(2).mean().backward()
opt.step()
Writer(io.BytesIO()).save(net)

# source: facebookresearch/ParlAI PR#2512
# mechanism: [optimizer state load] fp16 wrapper wants its fp32 moments kept, which load_state_dict would cast to the parameters' type; it puts the saved tensors back afterwards and so undoes the move to the GPU as well
# phase: resume -> optimizer step; failing op: aten::lerp_ (cpu state, cuda gradient)
# expect: raises
import io
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class MemoryEfficientFP16Optimizer:
    def __init__(self, optimizer):
        self.optimizer = optimizer

    def state_dict(self):
        return self.optimizer.state_dict()

    def load_state_dict(self, state_dict):
        self.optimizer.load_state_dict(state_dict)
        params = [p for group in self.optimizer.param_groups for p in group["params"]]
        for index, values in state_dict["state"].items():
            self.optimizer.state[params[index]] = dict(values)  # ROOT

    def step(self):
        self.optimizer.step()  # RAISE

def build():
    net = nn.Linear(4, 2).to(dev)
    return net, MemoryEfficientFP16Optimizer(torch.optim.Adam(net.parameters(), foreach=False))

def train_step(net, opt):
    net(torch.ones(3, 4, device=dev)).sum().backward()
    opt.step()

net, opt = build()
train_step(net, opt)
file = io.BytesIO()
torch.save({"model": net.state_dict(), "optimizer": opt.state_dict()}, file)
states = torch.load(io.BytesIO(file.getvalue()), map_location="cpu")  # ALSO
net, opt = build()
net.load_state_dict(states["model"])
opt.load_state_dict(states["optimizer"])
train_step(net, opt)

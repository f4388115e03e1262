# source: supernnova/SuperNNova PR#141 (issue 140)
# mechanism: [EMA / shadow copy] running mean and second moment of the weights are collected on the CPU (the update brings each parameter over); evaluation draws a model from them and runs it on the CUDA batch
# phase: evaluation; failing op: aten::linear / addmm (cpu weights, cuda batch)
# expect: raises
import copy
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class Swag(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.module, self.n = copy.deepcopy(model), 0
        self.second = [torch.zeros_like(p) for p in self.module.parameters()]

    @torch.no_grad()
    def update_parameters(self, model):
        for s, m, p in zip(self.second, self.module.parameters(), model.parameters()):
            p = p.detach().to(m.device)
            m.add_((p - m) / (self.n + 1))
            s.add_((p * p - s) / (self.n + 1))
        self.n += 1

    @torch.no_grad()
    def sample(self, scale):
        drawn = copy.deepcopy(self.module)
        for s, m, d in zip(self.second, self.module.parameters(), drawn.parameters()):
            d.copy_(m + scale * (s - m * m).clamp(min=1e-8).sqrt() * torch.randn_like(m))
        return drawn

def eval_step(model, batch, scale=0.5):
    drawn = model.sample(scale)  # ROOT
    drawn.eval()  # ALSO
    return drawn(batch)  # RAISE  # ALSO

net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))
swag = Swag(net)
net.to(dev)
for _ in range(3):
    swag.update_parameters(net)
eval_step(swag, torch.randn(5, 4, device=dev))

# source: pytorch/pytorch#113758, PR#113759 (maintainers: Adam's step is a CPU tensor by design)
# mechanism: none; a checkpoint is read to the CPU and resumed on two GPUs: load_state_dict brings the moments to each parameter, step and RNG states stay on the CPU
# phase: checkpoint load -> optimizer step
# expect: clean
# needs: 2 GPUs
import io

import torch
import torch.nn as nn

homes = [torch.device("cuda", 0), torch.device("cuda", 1)]


class Pipeline(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList(nn.Linear(4, 4).to(d) for d in homes)

    def forward(self, x):
        for part in self.parts:
            x = part(x.to(part.weight.device)).tanh()
        return x


def train(net, opt, steps):
    for _ in range(steps):
        opt.zero_grad()
        net(torch.randn(8, 4)).square().mean().backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()


net = Pipeline()
opt = torch.optim.AdamW(net.parameters(), lr=1e-2)
train(net, opt, 2)
disk = io.BytesIO()
torch.save({"net": net.state_dict(), "opt": opt.state_dict(), "rng": torch.get_rng_state()}, disk)

disk.seek(0)
saved = torch.load(disk, map_location="cpu")
net = Pipeline()
net.load_state_dict(saved["net"])
opt = torch.optim.AdamW(net.parameters(), lr=1e-2)
opt.load_state_dict(saved["opt"])
torch.set_rng_state(saved["rng"])
for p, s in opt.state.items():
    assert s["step"].device.type == "cpu" and s["exp_avg"].device == p.device
train(net, opt, 2)

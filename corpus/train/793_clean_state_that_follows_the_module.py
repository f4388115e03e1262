# source: clean control, must not be reported
# mechanism: none; buffers, ModuleList, ParameterDict and lazily built tensors follow the module; a checkpoint read onto the CPU is put back by load_state_dict
# phase: n/a
# expect: clean
import io
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(2))
        self.gains = nn.ParameterDict({"a": nn.Parameter(torch.ones(4))})
        self.register_buffer("position", torch.linspace(0, 1, 3)[:, None], persistent=False)

    def forward(self, x):
        mask = torch.ones_like(x[..., :1])
        x = x + self.position.to(x.dtype)
        for layer in self.layers:
            x = layer(x).relu() * self.gains["a"]
        return x * mask + x.new_zeros(4)

net = Encoder().to(dev)
opt = torch.optim.Adam(net.parameters())
net(torch.randn(2, 3, 4, device=dev)).sum().backward()
opt.step()
file = io.BytesIO()
torch.save({"net": net.state_dict(), "opt": opt.state_dict()}, file)
file.seek(0)
saved = torch.load(file, map_location="cpu")
net.load_state_dict(saved["net"])
opt.load_state_dict(saved["opt"])
opt.step()

# source: none: a correct program
# mechanism: none; logging, checkpoints and sampling on the CPU beside CUDA work
# phase: n/a
# expect: clean
import torch

import io

dev = torch.device("cuda", 0)

net = torch.nn.Linear(3, 2).to(dev)
generator = torch.Generator().manual_seed(0)
total = torch.zeros(2)
for _ in range(3):
    out = net(torch.randn(4, 3, generator=generator).to(dev))
    total += out.detach().mean(0).cpu()
    total *= out.detach().norm().item()
file = io.BytesIO()
torch.save({name: value.cpu() for name, value in net.state_dict().items()}, file)
file.seek(0)
net.load_state_dict(torch.load(file, weights_only=True))
assert net.weight.device == dev and total.shape == (2,)

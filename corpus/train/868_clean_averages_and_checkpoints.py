# source: clean control, must not be reported
# mechanism: none; averaged copies taken after the move or kept on the CPU with explicit moves, batch-norm statistics recomputed with a device, checkpoints through the CPU, a model built under a default device
# phase: n/a
# expect: clean
import copy
import io
import torch
import torch.nn as nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn, update_bn

dev = torch.device("cuda", 0)


with torch.device(dev):
    net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
ema = AveragedModel(net, multi_avg_fn=get_ema_multi_avg_fn(0.9), use_buffers=True)
host = {k: v.detach().cpu().clone() for k, v in net.state_dict().items()}   # average kept on the CPU
opt = torch.optim.AdamW(net.parameters(), lr=1e-2)
loader = [(torch.randn(6, 4), torch.randn(6, 1)) for _ in range(3)]
for x, y in loader:
    loss = nn.functional.mse_loss(net(x.to(dev)), y.to(dev))
    opt.zero_grad()
    loss.backward()
    opt.step()
    ema.update_parameters(net)
    for k, v in net.state_dict().items():
        if v.is_floating_point():
            host[k].lerp_(v.detach().to(host[k].device), 0.1)
update_bn(loader, ema, device=dev)
file = io.BytesIO()
torch.save({"net": net.state_dict(), "opt": opt.state_dict(), "ema": ema.state_dict()}, file)
file.seek(0)
state = torch.load(file, map_location="cpu")
other = copy.deepcopy(net)
other.load_state_dict(host)
net.load_state_dict(state["net"])
opt.load_state_dict(state["opt"])
ema.load_state_dict(state["ema"])
with torch.no_grad():
    gap = (ema(loader[0][0].to(dev)) - other.eval()(loader[0][0].to(dev))).abs().max()
net(loader[1][0].to(dev)).sum().backward()
opt.step()

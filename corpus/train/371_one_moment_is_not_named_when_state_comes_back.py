# source: volcengine/verl PR#299, pytorch/pytorch PR#84708
# mechanism: all of an optimizer's state is sent to the host for a rollout; the way back names two of three moments
# phase: optimizer; aten::maximum
# expect: raises
import torch
from torch import nn


def offload(optimizer):
    for state in optimizer.state.values():
        for name, value in state.items():
            if torch.is_tensor(value) and value.dim() > 0:
                state[name] = value.to("cpu")


def onload(optimizer, device):
    for state in optimizer.state.values():
        for name in ("exp_avg", "exp_avg_sq"):  # ROOT
            state[name] = state[name].to(device)


net = nn.Linear(3, 1).to("cuda")
optimizer = torch.optim.Adam(net.parameters(), amsgrad=True, foreach=False)
for phase in range(2):
    if phase > 0:
        onload(optimizer, "cuda")
    net(torch.ones(2, 3, device="cuda")).sum().backward()
    optimizer.step()  # RAISE
    offload(optimizer)

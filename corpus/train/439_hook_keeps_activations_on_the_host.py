# source: none; features of a critic are recorded by hooks, once for looking at them and once for a loss
# mechanism: one hook sends what it records to the CPU, the other does not; both are compared in the same step
# phase: forward; aten::sub
# expect: raises
import torch
from torch import nn


def record(kept, name, host):
    if host:
        def hook(_module, _inputs, output):
            kept[name] = output.detach().cpu()  # ROOT
    else:
        def hook(_module, _inputs, output):
            kept[name] = output
    return hook


def run(net, x, kept, host):
    handles = [layer.register_forward_hook(record(kept, name, host)) for name, layer in net.named_children()]
    net(x)
    for handle in handles:
        handle.remove()


def distance(made, real):
    total = 0.0
    for name, features in made.items():
        total = total + (features - real[name]).abs().mean()  # RAISE  # ALSO
    return total


def step(critic):
    real, made = {}, {}
    run(critic, torch.randn(5, 4, device="cuda"), real, host=True)  # ALSO
    print({name: features.std().item() for name, features in real.items()})
    run(critic, torch.randn(5, 4, device="cuda", requires_grad=True), made, host=False)
    distance(made, real).backward()


step(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)).cuda())

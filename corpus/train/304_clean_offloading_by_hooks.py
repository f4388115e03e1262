# source: none: a correct program
# mechanism: none; modules and saved activations visit the GPU by hooks that bring back all they took
# phase: n/a
# expect: clean
import torch

dev = torch.device("cuda", 0)


class ParkedActivations(torch.autograd.graph.saved_tensors_hooks):
    def __init__(self):
        super().__init__(lambda tensor: (tensor.device, tensor.cpu()), lambda parked: parked[1].to(parked[0]))


class Standardize(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("mean", torch.zeros(width))
        self.gain = torch.nn.Parameter(torch.ones(width))

    def forward(self, x):
        return (x - self.mean) * self.gain


def bring(module, args):
    module.to(dev)
    return tuple(arg.to(dev) for arg in args)


def send_back(module, args, output):
    module.to("cpu")
    return output.cpu()


def blocks():
    return torch.nn.Sequential(torch.nn.Linear(4, 4), Standardize(4), torch.nn.Tanh(), torch.nn.Linear(4, 2))


sampled = blocks()
for child in sampled:
    child.register_forward_pre_hook(bring)
    child.register_forward_hook(send_back)
with torch.no_grad():
    assert sampled(torch.randn(3, 4)).device.type == "cpu"
    assert all(parameter.device.type == "cpu" for parameter in sampled.parameters())

trained = blocks().to(dev)
optimizer = torch.optim.SGD(trained.parameters(), lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    with ParkedActivations():
        loss = trained(torch.randn(3, 4, device=dev)).pow(2).mean()
    loss.backward()
    optimizer.step()

# source: huggingface/accelerate#2701
# mechanism: a hook brings a module's parameters to the GPU for its forward, and not its buffers
# phase: forward; aten::sub
# expect: raises
import torch

dev = torch.device("cuda", 0)


class Standardize(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("scale", torch.ones(width))
        self.gain = torch.nn.Parameter(torch.ones(width))

    def forward(self, x):
        return (x - self.mean) / self.scale * self.gain  # RAISE


def bring(module, args):
    for parameter in module.parameters(recurse=False):  # ALSO
        parameter.data = parameter.data.to(dev)  # ROOT
    return tuple(arg.to(dev) for arg in args)


def send_back(module, args, output):
    for parameter in module.parameters(recurse=False):
        parameter.data = parameter.data.to("cpu")


def offload(model):
    for module in model.modules():
        if next(module.parameters(recurse=False), None) is not None:
            module.register_forward_pre_hook(bring)
            module.register_forward_hook(send_back)
    return model


model = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.ReLU(), Standardize(4), torch.nn.Linear(4, 2))
with torch.no_grad():
    offload(model)(torch.randn(3, 6))

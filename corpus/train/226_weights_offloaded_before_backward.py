# source: bghira/SimpleTuner#1975
# mechanism: each block is sent back to the CPU right after its forward; backward needs the block's weight on the GPU
# phase: backward; aten::mm
# expect: raises
import torch

dev = torch.device("cuda", 0)


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.eye(width) + 0.1 * torch.randn(width, width))

    def forward(self, x):
        return x + torch.nn.functional.silu(x @ self.weight)


def fetch(block, args):
    block.to(dev)
    return tuple(arg.to(dev) for arg in args)


def release(block, args, output):
    block.to("cpu")  # ROOT
    return output


def offload_blocks(model):
    for block in model:
        block.register_forward_pre_hook(fetch)
        block.register_forward_hook(release)  # ALSO
    return model


model = offload_blocks(torch.nn.Sequential(Block(4), Block(4), Block(4)))
noisy, noise = torch.randn(6, 4, device=dev), torch.randn(6, 4, device=dev)
with torch.no_grad():
    model(noisy)  # sampling works
loss = (model(noisy) - noise).pow(2).mean()
loss.backward()  # RAISE

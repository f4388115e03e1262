# source: own program
# mechanism: blocks are brought to the GPU by hooks for their forward pass and sent back afterwards; the inputs are aligned by the same hooks
# expect: clean
import torch
from torch import nn


class StageHook:
    def __init__(self, module, execution, storage="cpu"):
        self.execution = torch.device(execution)
        self.storage = torch.device(storage)
        self.trips = 0
        module.to(self.storage)
        self.handles = [module.register_forward_pre_hook(self.fetch, with_kwargs=True), module.register_forward_hook(self.release)]

    def fetch(self, module, args, kwargs):
        module.to(self.execution)
        self.trips += 1
        align = lambda v: v.to(self.execution) if torch.is_tensor(v) else v
        return tuple(align(a) for a in args), {k: align(v) for k, v in kwargs.items()}

    def release(self, module, args, output):
        module.to(self.storage)
        return output

    def remove(self):
        for handle in self.handles:
            handle.remove()


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fc = nn.Linear(dim, dim)

    def forward(self, x, scale=None):
        y = torch.relu(self.fc(self.norm(x)))
        return x + (y if scale is None else y * scale)


class Stack(nn.Module):
    def __init__(self, dim=12, depth=4):
        super().__init__()
        self.blocks = nn.ModuleList(Block(dim) for _ in range(depth))
        self.head = nn.Linear(dim, 2)

    def forward(self, x, scale):
        for block in self.blocks:
            x = block(x, scale=scale)
        return self.head(x)


def stage(model, execution):
    return [StageHook(m, execution) for m in [*model.blocks, model.head]]


def main():
    torch.manual_seed(0)
    model = Stack().eval()
    x, scale = torch.randn(4, 12), torch.rand(12)
    with torch.no_grad():
        reference = model(x, scale)
        hooks = stage(model, "cuda")
        staged = model(x, scale)
        error = (staged.cpu() - reference).abs().max().item()
        for hook in hooks:
            hook.remove()
        again = model(x, scale)
    print("error", error < 1e-4, staged.device, again.device, sum(h.trips for h in hooks))


if __name__ == "__main__":
    main()

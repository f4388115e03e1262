# source: TransformerLensOrg/TransformerLens#202
# mechanism: caching hooks default to the first GPU instead of the device the model was configured for, so cached activations do not match the running model
# needs: 2 GPUs
# expect: raises
from dataclasses import dataclass
from functools import partial

import torch
from torch import nn


@dataclass
class HookedConfig:
    vocab: int = 20
    dim: int = 12
    layers: int = 3
    device: str = "cuda:1"


class HookPoint(nn.Module):
    def __init__(self):
        super().__init__()
        self.name = None
        self.functions = []

    def forward(self, x):
        for function in self.functions:
            replaced = function(x, hook=self)
            x = x if replaced is None else replaced
        return x


class HookedRoot(nn.Module):
    def setup(self):
        self.points = {}
        for name, module in self.named_modules():
            if isinstance(module, HookPoint):
                module.name = name
                self.points[name] = module

    def reset_hooks(self):
        for point in self.points.values():
            point.functions.clear()

    def caching_hooks(self, names_filter=lambda name: True, device=None):
        if device is None:
            device = "cuda"  # ROOT
        cache = {}

        def save(value, hook):
            cache[hook.name] = value.detach().to(device)  # ALSO

        for name, point in self.points.items():
            if names_filter(name):
                point.functions.append(save)
        return cache

    def run_with_cache(self, *args, device=None):
        cache = self.caching_hooks(device=device)  # ALSO
        out = self(*args)
        self.reset_hooks()
        return out, cache

    def run_with_hooks(self, *args, hooks):
        for name, function in hooks:
            self.points[name].functions.append(function)
        out = self(*args)
        self.reset_hooks()
        return out


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.lin = nn.Linear(dim, dim)
        self.hook_out = HookPoint()

    def forward(self, x):
        return x + self.hook_out(torch.tanh(self.lin(x)))


class HookedModel(HookedRoot):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.embed = nn.Embedding(cfg.vocab, cfg.dim)
        self.blocks = nn.ModuleList(Block(cfg.dim) for _ in range(cfg.layers))
        self.unembed = nn.Linear(cfg.dim, cfg.vocab)
        self.setup()
        self.to(cfg.device)

    def forward(self, tokens):
        x = self.embed(tokens.to(self.cfg.device))
        for block in self.blocks:
            x = block(x)
        return self.unembed(x)


def patch_position(value, hook, source, position):
    mask = torch.arange(value.shape[1], device=value.device) == position
    return torch.where(mask[None, :, None], source[hook.name], value)  # RAISE # ALSO


def sweep(model, clean, corrupt):
    reference, cache = model.run_with_cache(clean)  # ALSO
    effects = {}
    for name in model.points:
        hook = partial(patch_position, source=cache, position=1)
        logits = model.run_with_hooks(corrupt, hooks=[(name, hook)])
        effects[name] = (logits - reference).abs().mean().item()
    return effects


if __name__ == "__main__":
    torch.manual_seed(0)
    model = HookedModel(HookedConfig())
    with torch.no_grad():
        print(sweep(model, torch.tensor([[1, 5, 9]]), torch.tensor([[1, 6, 9]])))

# source: vllm-project/llm-compressor#107
# mechanism: the activation statistics of a layer are collected on the GPU where it ran, and after the calibration pass the weights that they must scale are offloaded to the CPU.
# expect: raises
import torch
from torch import nn


class OffloadedModule(nn.Module):
    def __init__(self, module, execution_device):
        super().__init__()
        self.module = module.to("cpu")
        self.execution_device = execution_device

    def forward(self, *args):
        self.module.to(self.execution_device)
        try:
            return self.module(*(a.to(self.execution_device) for a in args))
        finally:
            self.module.to("cpu")


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.input_layernorm = nn.LayerNorm(dim)
        self.q_proj = nn.Linear(dim, dim)
        self.k_proj = nn.Linear(dim, dim)
        self.o_proj = nn.Linear(dim, dim)

    def forward(self, x):
        h = self.input_layernorm(x)
        gate = torch.sigmoid(self.q_proj(h) * self.k_proj(h))
        return x + self.o_proj(gate * h)


class OffloadedLM(nn.Module):
    def __init__(self, device, vocab=40, dim=16, layers=2):
        super().__init__()
        self.embed = OffloadedModule(nn.Embedding(vocab, dim), device)
        self.blocks = nn.ModuleList(OffloadedModule(Block(dim), device) for _ in range(layers))

    def forward(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        return x


class SmoothQuantModifier:
    def __init__(self, strength=0.5):
        self.strength = strength
        self.ranges = {}

    def on_initialize(self, model):
        self.handles = []
        for index, block in enumerate(model.blocks):
            norm = block.module.input_layernorm
            self.handles.append(norm.register_forward_hook(self.make_hook(index)))

    def make_hook(self, index):
        def observe(module, inputs, output):
            peak = output.detach().abs().flatten(0, -2).amax(dim=0)
            old = self.ranges.get(index)
            self.ranges[index] = peak if old is None else torch.maximum(old, peak)
        return observe

    def _scales(self, balance_layers, activation_range):
        weight_peaks = [layer.weight.abs().amax(dim=0) for layer in balance_layers]
        weight_range = torch.stack(weight_peaks).amax(dim=0)
        scales = activation_range.pow(self.strength) / weight_range.pow(1 - self.strength)  # RAISE # ROOT
        return scales.clamp_min(1e-5)

    @torch.no_grad()
    def on_finalize(self, model):
        for handle in self.handles:
            handle.remove()
        for index, block in enumerate(model.blocks):
            layer = block.module
            scales = self._scales([layer.q_proj, layer.k_proj], self.ranges[index])  # ALSO
            layer.input_layernorm.weight.div_(scales)
            layer.input_layernorm.bias.div_(scales)
            for linear in (layer.q_proj, layer.k_proj):
                linear.weight.mul_(scales)


def main():
    torch.manual_seed(0)
    model = OffloadedLM(torch.device("cuda:0")).eval()
    modifier = SmoothQuantModifier()
    modifier.on_initialize(model)
    with torch.no_grad():
        for _ in range(2):
            model(torch.randint(0, 40, (2, 6)))
    modifier.on_finalize(model)
    print(model.blocks[0].module.q_proj.weight.abs().mean().item())


if __name__ == "__main__":
    main()

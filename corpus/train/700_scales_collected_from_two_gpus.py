# source: intel/auto-round PR#1175
# mechanism: [model parallel] layers of one attention block are spread over two GPUs for tuning; their per-layer weight scales are collected and concatenated to get one scale for q, k and v
# phase: quantization, scale unification; failing op: aten::cat (cuda:0, cuda:1)
# expect: raises
# needs: 2 GPUs
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class SelfAttention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(dim, dim) for _ in range(3))
        self.o_proj = nn.Linear(dim, dim)

class DecoderBlock(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.self_attn = SelfAttention(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

def place_layers(block, devices):
    linears = [m for m in block.modules() if isinstance(m, nn.Linear)]
    for i, m in enumerate(linears):
        m.to(devices[i * len(devices) // len(linears)])

class ScaleSearch:
    def __init__(self, block, attr="weight_global_scale", limit=448.0 * 6.0):
        self.block, self.attr, self.limit = block, attr, limit

    def calibrate(self):
        for m in self.block.modules():
            if isinstance(m, nn.Linear):
                setattr(m, self.attr, self.limit / m.weight.detach().abs().max())

    def collect(self, mods):
        scales = []
        for m in mods:
            if hasattr(m, self.attr):
                scales.append(getattr(m, self.attr).reshape(1))  # ROOT
        return scales  # ALSO

    def unify(self, mods):
        scales = self.collect(mods)
        shared = torch.min(torch.cat(scales))  # RAISE  # ALSO
        for m in mods:
            setattr(m, self.attr, shared.clone().to(m.weight.device))

    def run(self):
        self.calibrate()
        for m in self.block.modules():
            if isinstance(m, SelfAttention):
                self.unify([m.q_proj, m.k_proj, m.v_proj])

block = DecoderBlock()
place_layers(block, [dev, torch.device("cuda", 1), dev])
ScaleSearch(block).run()

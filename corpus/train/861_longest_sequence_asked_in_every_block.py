# source: ecmwf/WeatherGenerator#1531 (max calculation inside of forward creates CUDA sync)
# mechanism: [zero-dim scalar] lengths of packed sequences are on the GPU; every attention block takes their maximum, a 0-dim CUDA tensor, and gives it as a size, which reads it back to the host
# phase: forward; failing op: new_zeros size (hidden aten::item)
# expect: silent
# kinds: implicit-sync
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class VarlenAttention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)

    def forward(self, x, lens):
        longest = lens.max()  # ROOT
        count, total = lens.shape[0], x.shape[0]
        row = torch.repeat_interleave(torch.arange(count, device=x.device), lens, output_size=total)
        column = torch.arange(total, device=x.device) - (lens.cumsum(0) - lens)[row]
        packed = self.qkv(x)
        padded = x.new_zeros((count, longest, packed.shape[-1]))  # RAISE
        padded[row, column] = packed
        q, k, v = padded.chunk(3, dim=-1)
        out = (q @ k.transpose(1, 2)).softmax(-1) @ v
        return out[row, column]

blocks = nn.ModuleList([VarlenAttention(6), VarlenAttention(6)]).to(dev)
sizes = [3, 5, 2]
x, lens = torch.randn(sum(sizes), 6, device=dev), torch.tensor(sizes, device=dev)
for block in blocks:
    x = x + block(x, lens)

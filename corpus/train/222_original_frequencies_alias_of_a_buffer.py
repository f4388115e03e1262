# source: huggingface/transformers PR#35608
# mechanism: an attribute names a tensor that is a buffer too; a move gives only the buffer its new tensor
# phase: forward; aten::mul in torch.outer
# expect: raises
import torch

dev = torch.device("cuda", 0)


class Rotary(torch.nn.Module):
    def __init__(self, width, trained_length):
        super().__init__()
        frequencies = 1.0 / 10000 ** (torch.arange(0, width, 2) / width)
        self.register_buffer("frequencies", frequencies, persistent=False)
        self.original = self.frequencies  # ROOT
        self.trained_length = trained_length

    def stretched(self, length):
        return self.frequencies * (self.trained_length / length)

    def forward(self, x):
        length = x.shape[1]
        positions = torch.arange(length, device=x.device, dtype=x.dtype)
        frequencies = self.stretched(length) if length > self.trained_length else self.original  # ALSO
        angles = torch.outer(positions, frequencies)  # RAISE  # ALSO
        even, odd = x[..., 0::2], x[..., 1::2]
        turned = (even * angles.cos() - odd * angles.sin(), even * angles.sin() + odd * angles.cos())
        return torch.stack(turned, -1).flatten(-2)


class Attention(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.query, self.key = torch.nn.Linear(width, width), torch.nn.Linear(width, width)
        self.rotary = Rotary(width, trained_length=8)

    def forward(self, x):
        return self.rotary(self.query(x)) @ self.rotary(self.key(x)).transpose(-1, -2)


model = Attention(4).to(dev)
for length in (12, 5):
    model(torch.randn(2, length, 4, device=dev))

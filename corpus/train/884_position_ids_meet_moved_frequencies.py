# source: huggingface/transformers PR#43369 (fixes #43350)
# mechanism: [data not moved] rotary embedding takes the frequencies to the hidden states' device, but the position ids that the caller built on the CPU are used where they are
# phase: forward; failing op: aten::bmm ('mat2 is on cpu')
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class Rotary(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer("inv_freq", 1.0 / 100 ** (torch.arange(0, dim, 2) / dim), persistent=False)

    def forward(self, x, position_ids):
        inv_freq = self.inv_freq[None, :, None].float().expand(position_ids.shape[0], -1, 1).to(x.device)
        positions = position_ids[:, None, :].float()  # ROOT
        freqs = (inv_freq @ positions).transpose(1, 2)  # RAISE  # ALSO
        angle = torch.cat((freqs, freqs), -1)
        return angle.cos(), angle.sin()

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.rotary, self.out = nn.Embedding(8, 4), Rotary(4), nn.Linear(4, 8)

    def forward(self, input_ids, position_ids=None):
        hidden = self.embed(input_ids)
        if position_ids is None:
            position_ids = torch.arange(input_ids.shape[1], device=hidden.device)[None]
        cos, sin = self.rotary(hidden, position_ids)  # ALSO
        return self.out(hidden * cos + hidden.roll(2, -1) * sin)

model = Model().to(dev)
ids = torch.tensor([[1, 2, 3]], device=dev)
model(ids)
mask = torch.tensor([[0, 1, 1]])  # ALSO
model(ids, position_ids=(mask.cumsum(-1) - 1).clamp(min=0))

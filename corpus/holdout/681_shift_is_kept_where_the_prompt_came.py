# source: QwenLM/Qwen3-VL#765 (hiyouga/LlamaFactory#6910)
# mechanism: [hidden state] the position shift found in the prompt step is kept on the model where the prompt lies; the generation loop counts on the other GPU
# phase: generation (second step); failing op: aten::add (cuda:1 0-d + cuda:0)
# expect: raises
# needs: 2 GPUs
import torch
import torch.nn as nn

first, last = torch.device("cuda", 0), torch.device("cuda", 1)
PATCH = 31


class Captioner(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.words = nn.Embedding(32, width)
        self.places = nn.Embedding(64, width)
        self.out = nn.Linear(width, 32)
        self.shift = None

    def lay_out(self, ids, grid):
        is_patch = ids == PATCH
        places = (~is_patch).long().cumsum(1)
        side = grid.max(dim=1).values
        places = places + side.unsqueeze(1) * is_patch.long()
        return places, places.max(dim=1, keepdim=True).values + 1 - ids.shape[1]

    def forward(self, ids, slots, grid=None):
        x = self.words(ids.to(last))
        if grid is not None:
            places, shift = self.lay_out(ids, grid)
            self.shift = shift  # ROOT
        else:
            begin = slots[0] + self.shift  # RAISE  # ALSO
            places = begin + torch.arange(ids.shape[1], device=begin.device)
        return self.out(x + self.places(places.to(last)))


model = Captioner().to(last).eval()
ids = torch.tensor([[1, PATCH, PATCH, PATCH, PATCH, 5], [2, 7, PATCH, PATCH, 4, 9]], device=first)
grid = torch.tensor([[2, 2], [1, 2]], device=first)
slots = torch.arange(ids.shape[1], device=last)
with torch.no_grad():
    for step in range(3):
        logits = model(ids, slots, grid if step == 0 else None)
        ids = logits[:, -1:].argmax(-1).to(first)
        slots = slots[-1:] + 1

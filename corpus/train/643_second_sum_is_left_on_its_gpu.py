# source: mosaicml/llm-foundry PR#1332
# mechanism: of two residual lines of a block, one brings what its part gives to the device of x, and the other does not
# phase: generation; add
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm_1 = nn.LayerNorm(width)
        self.mixer = nn.Linear(width, width)
        self.norm_2 = nn.LayerNorm(width)
        self.ffn = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.drop_mixer = nn.Dropout(0.1)
        self.drop_ffn = nn.Dropout(0.1)

    def forward(self, x):
        m = self.mixer(self.norm_1(x))
        x = x + self.drop_mixer(m).to(x.device)
        n = self.ffn(self.norm_2(x).to(self.ffn[0].weight.device))  # ALSO
        x = x + self.drop_ffn(n)  # ROOT  # RAISE
        return x


class Melody(nn.Module):
    def __init__(self, pitches, width, depth):
        super().__init__()
        self.pitch = nn.Embedding(pitches, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.head = nn.Linear(width, pitches)

    def forward(self, notes):
        x = self.pitch(notes)
        for block in self.blocks:
            x = block(x)
        return self.head(x[:, -1])


def spread(melody):
    melody.to("cuda:0")
    melody.blocks[1].ffn.to("cuda:1")
    return melody.eval()


melody = spread(Melody(12, 8, 2))
notes = torch.randint(12, (2, 4), device="cuda:0")
with torch.no_grad():
    for _ in range(3):
        notes = torch.cat([notes, melody(notes).argmax(-1, keepdim=True)], dim=1)

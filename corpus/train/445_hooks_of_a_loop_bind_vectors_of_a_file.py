# source: none; directions that steer a model are found once, saved, and added by hooks in another run
# mechanism: the vectors were read to the host; each hook of a loop keeps one of them as the default of an argument
# phase: forward; aten::add
# expect: raises
import os
import tempfile

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mix = nn.Sequential(nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width))

    def forward(self, stream):
        return stream + self.mix(self.norm(stream))


class Writer(nn.Module):
    def __init__(self, letters=32, width=8, depth=3):
        super().__init__()
        self.letters = nn.Embedding(letters, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.head = nn.Linear(width, letters)

    def forward(self, ids):
        stream = self.letters(ids)
        for block in self.blocks:
            stream = block(stream)
        return self.head(stream)


def find_directions(writer, liked, disliked):
    found, handles = {}, []
    for k, block in enumerate(writer.blocks):
        means = found.setdefault(k, [])
        handles.append(block.register_forward_hook(lambda m, i, out, means=means: means.append(out.mean((0, 1)))))
    with torch.inference_mode():
        writer(liked), writer(disliked)
    [handle.remove() for handle in handles]
    return {k: (yes - no).clone() for k, (yes, no) in found.items()}


def steer(writer, path, strength):
    directions = torch.load(path, map_location="cpu")  # ROOT
    for k, direction in directions.items():
        def push(module, inputs, output, direction=direction):  # ALSO
            return output + strength * direction  # RAISE  # ALSO
        writer.blocks[k].register_forward_hook(push)


writer = Writer().to("cuda").eval()
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "directions.pt")
    torch.save(find_directions(writer, *torch.randint(0, 32, (2, 4, 6), device="cuda")), path)
    steer(writer, path, strength=1.5)
print(writer(torch.randint(0, 32, (1, 6), device="cuda")).argmax(-1).tolist())

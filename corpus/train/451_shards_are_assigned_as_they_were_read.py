# source: lincc-frameworks/hyrax#893
# mechanism: a model was made on the GPU; shards that were read to the host are put in by assignment and not copied
# phase: forward; aten::conv1d
# expect: raises
import json
import tempfile
from pathlib import Path

import torch
from torch import nn


class Denoiser(nn.Module):
    def __init__(self, channels=8):
        super().__init__()
        self.inward = nn.Conv1d(1, channels, 5, padding=2)
        self.middle = nn.ModuleList(nn.Conv1d(channels, channels, 3, padding=1) for _ in range(2))
        self.outward = nn.Conv1d(channels, 1, 5, padding=2)

    def forward(self, signal):
        x = torch.tanh(self.inward(signal))  # RAISE
        for layer in self.middle:
            x = x + torch.tanh(layer(x))
        return signal - self.outward(x)


def write_shards(folder, state, per_shard=3):
    index, names = {}, list(state)
    for begin in range(0, len(names), per_shard):
        file = f"shard-{begin // per_shard:03}.pt"
        part = {name: state[name] for name in names[begin:begin + per_shard]}
        torch.save(part, folder / file)
        index.update(dict.fromkeys(part, file))
    (folder / "index.json").write_text(json.dumps(index))


def read_shards(folder, model):
    index = json.loads((folder / "index.json").read_text())
    missing = set(model.state_dict()) - set(index)
    if missing:
        raise KeyError(f"the index lacks {sorted(missing)}")
    for file in sorted(set(index.values())):
        shard = torch.load(folder / file, map_location="cpu", mmap=True)  # ALSO
        model.load_state_dict(shard, strict=False, assign=True)  # ROOT
    return model


with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    write_shards(folder, Denoiser().state_dict())
    with torch.device("cuda"):
        denoiser = read_shards(folder, Denoiser()).eval()  # ALSO
        noisy = torch.sin(torch.linspace(0, 12, 64)) + 0.2 * torch.randn(2, 1, 64)
    with torch.no_grad():
        print(denoiser(noisy).std().item())

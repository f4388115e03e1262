# source: tatp22/multidim-positional-encoding#33
# mechanism: an encoding that is kept for the last shape was made for a volume on the CPU, and is added to one of the same shape on the GPU
# expect: raises
import torch
from torch import nn


def interleave(angles):
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)


class PositionalEncoding3D(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.channels = (channels + 5) // 6 * 2
        inv = 1.0 / 10000 ** (torch.arange(0, self.channels, 2).float() / self.channels)
        self.register_buffer("inv_freq", inv, persistent=False)
        self.cached = None  # ALSO

    def axis(self, size):
        pos = torch.arange(size, device=self.inv_freq.device).float()
        return interleave(torch.outer(pos, self.inv_freq))

    def forward(self, tensor):
        if self.cached is not None and self.cached.shape == tensor.shape:  # ALSO
            return self.cached  # ALSO
        b, x, y, z, c = tensor.shape
        ex, ey, ez = self.axis(x), self.axis(y), self.axis(z)
        emb = torch.zeros(x, y, z, 3 * self.channels, device=tensor.device)
        emb[..., : self.channels] = ex[:, None, None]
        emb[..., self.channels : 2 * self.channels] = ey[:, None]
        emb[..., 2 * self.channels :] = ez
        self.cached = emb[None, ..., :c].expand(b, -1, -1, -1, -1).clone()
        return self.cached


class Summer(nn.Module):
    def __init__(self, penc):
        super().__init__()
        self.penc = penc

    def forward(self, tensor):
        penc = self.penc(tensor)
        return tensor + penc  # RAISE # ROOT


class VolumeEncoder(nn.Module):
    def __init__(self, channels=12, classes=2):
        super().__init__()
        self.patch = nn.Conv3d(1, channels, 2, stride=2)
        self.positions = Summer(PositionalEncoding3D(channels))
        self.block = nn.TransformerEncoderLayer(channels, 2, 24, batch_first=True)
        self.head = nn.Linear(channels, classes)

    def forward(self, volume):
        patches = self.patch(volume).permute(0, 2, 3, 4, 1)
        tokens = self.positions(patches).flatten(1, 3)
        return self.head(self.block(tokens).mean(1))


def count_outputs(model, size):
    model.eval()
    with torch.no_grad():
        return model(torch.zeros(1, 1, size, size, size)).shape[-1]


def predict(model, volumes, device):
    model.to(device).eval()
    out = []
    with torch.no_grad():
        for volume in volumes:
            out.append(model(volume.unsqueeze(0).to(device)).softmax(-1).cpu())
    return torch.cat(out)


if __name__ == "__main__":
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    model = VolumeEncoder()
    print("outputs", count_outputs(model, 4))
    print(predict(model, torch.randn(3, 1, 4, 4, 4), device))

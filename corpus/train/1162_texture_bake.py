# source: iffyloop/TripoSR-Bake#7
# mechanism: sample positions from a rasterizer that works on the host become a tensor without the device of the scene's triplanes
# expect: raises
import torch
from torch import nn
from torch.nn import functional as F


def rasterize_atlas(resolution, radius):
    rows = []
    for v in range(resolution):
        row = []
        for u in range(resolution):
            inside = (u + v) % 3 != 0
            row.append([u / resolution - 0.5, v / resolution - 0.5, 0.25 * radius, float(inside)])
        rows.append(row)
    return {"positions": rows, "resolution": resolution}


def scale_tensor(values, source, target):
    values = (values - source[0]) / (source[1] - source[0])
    return values * (target[1] - target[0]) + target[0]


def chunk_batch(function, chunk_size, *tensors):
    outputs = []
    for start in range(0, tensors[0].shape[0], chunk_size):
        outputs.append(function(*[t[start:start + chunk_size] for t in tensors]))
    return {key: torch.cat([o[key] for o in outputs]) for key in outputs[0]}


class TriplaneDecoder(nn.Module):
    def __init__(self, channels, width=16):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(channels * 3, width), nn.SiLU(), nn.Linear(width, 4))

    def forward(self, features):
        out = self.net(features)
        return {"density": out[..., :1], "color": out[..., 1:].sigmoid()}


class TriplaneRenderer:
    def __init__(self, radius=0.87, chunk_size=32):
        self.radius = radius
        self.chunk_size = chunk_size

    def query_triplane(self, decoder, positions, triplane):
        shape = positions.shape[:-1]
        positions = scale_tensor(positions.reshape(-1, 3), (-self.radius, self.radius), (-1, 1))

        def _query_chunk(x):
            planes = torch.stack([x[..., [0, 1]], x[..., [0, 2]], x[..., [1, 2]]])
            sampled = F.grid_sample(triplane, planes[:, :, None], align_corners=False)  # RAISE
            return decoder(sampled[..., 0].permute(2, 0, 1).flatten(1))

        out = chunk_batch(_query_chunk, self.chunk_size, positions)
        return {key: value.view(*shape, -1) for key, value in out.items()}


class Reconstructor(nn.Module):
    def __init__(self, channels=4, size=8):
        super().__init__()
        self.channels = channels
        self.size = size
        self.encode = nn.Linear(48, 3 * channels * size * size)
        self.decoder = TriplaneDecoder(channels)
        self.renderer = TriplaneRenderer()

    def forward(self, image):
        code = self.encode(image.flatten(1))
        return code.view(len(image), 3, self.channels, self.size, self.size)


def run_bake(model, scene_code, atlas):
    positions = torch.tensor(atlas["positions"])  # ROOT
    covered = positions[..., 3] > 0.5
    with torch.no_grad():
        queried = model.renderer.query_triplane(model.decoder, positions[..., :3], scene_code)
    colors = torch.where(covered[..., None], queried["color"], torch.zeros_like(queried["color"]))
    return {"colors": colors.cpu(), "coverage": covered.float().mean().item()}


def main():
    torch.manual_seed(0)
    device = "cuda:0" if torch.cuda.is_available() else "cpu"
    model = Reconstructor().to(device).eval()
    image = torch.rand(1, 3, 4, 4).to(device)
    with torch.no_grad():
        scene_codes = model(image)
    atlas = rasterize_atlas(8, model.renderer.radius)
    baked = run_bake(model, scene_codes[0], atlas)
    print(tuple(baked["colors"].shape), round(baked["coverage"], 3))


if __name__ == "__main__":
    main()

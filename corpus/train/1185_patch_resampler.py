# source: vllm-project/vllm#43844
# mechanism: a cached position table is cast to the input's type but not brought to its device, and it is rebuilt there only when it is too small
# expect: raises
import torch
from torch import nn
from torch.nn import functional as F


def sincos_1d(dim, positions):
    omega = 1.0 / 10000 ** (torch.arange(dim // 2, dtype=torch.float32) / (dim / 2))
    angles = positions.flatten()[:, None].float() * omega[None]
    return torch.cat([angles.sin(), angles.cos()], dim=1)


def sincos_2d(dim, height, width):
    ys, xs = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    table = torch.cat([sincos_1d(dim // 2, xs), sincos_1d(dim // 2, ys)], dim=1)
    return table.view(height, width, dim)


class Resampler(nn.Module):
    def __init__(self, queries, dim, kv_dim, max_size=(6, 6)):
        super().__init__()
        self.query = nn.Parameter(torch.randn(queries, dim) * 0.02)
        self.kv_proj = nn.Linear(kv_dim, dim)
        self.attention = nn.MultiheadAttention(dim, 2)
        self.norm = nn.LayerNorm(dim)
        self.dim = dim
        self.max_size = max_size
        self._set_2d_pos_cache(max_size)

    def _set_2d_pos_cache(self, max_size, device="cpu"):
        self.pos_embed = sincos_2d(self.dim, *max_size).to(device)  # ALSO

    def _adjust_pos_cache(self, tgt_sizes, device):
        max_h, max_w = int(tgt_sizes[:, 0].max()), int(tgt_sizes[:, 1].max())
        if max_h > self.max_size[0] or max_w > self.max_size[1]:  # ALSO
            self.max_size = max(max_h, self.max_size[0]), max(max_w, self.max_size[1])
            self._set_2d_pos_cache(self.max_size, device)

    def forward(self, x, tgt_sizes):
        device, dtype = x.device, x.dtype
        self._adjust_pos_cache(tgt_sizes, device)  # ALSO
        patch_len = tgt_sizes[:, 0] * tgt_sizes[:, 1]
        longest = int(patch_len.max())
        padding = torch.arange(longest, device=device)[None] >= patch_len.to(device)[:, None]
        rows = []
        for height, width in tgt_sizes.tolist():
            embed = self.pos_embed[:height, :width].reshape(height * width, -1).to(dtype)  # ROOT
            rows.append(F.pad(embed, (0, 0, 0, longest - height * width)))
        pos = torch.stack(rows, dim=1)  # ALSO
        x = self.kv_proj(x).permute(1, 0, 2)
        query = self.norm(self.query)[:, None].expand(-1, x.shape[1], -1)
        out, _ = self.attention(query, x + pos, x, key_padding_mask=padding)  # RAISE
        return out.permute(1, 0, 2)


class VisionTower(nn.Module):
    def __init__(self, patch=4, dim=12):
        super().__init__()
        self.patch = patch
        self.embed = nn.Linear(3 * patch * patch, dim)

    def forward(self, images):
        sizes, tokens = [], []
        for image in images:
            patches = F.unfold(image[None], self.patch, stride=self.patch)[0].t()
            sizes.append([image.shape[1] // self.patch, image.shape[2] // self.patch])
            tokens.append(self.embed(patches))
        return nn.utils.rnn.pad_sequence(tokens, batch_first=True), torch.tensor(sizes)


class MultiModalEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.tower = VisionTower()
        self.resampler = Resampler(queries=3, dim=8, kv_dim=12)

    def get_image_embeddings(self, images):
        device = next(self.parameters()).device
        tokens, sizes = self.tower([image.to(device) for image in images])
        return self.resampler(tokens, sizes)


def main():
    torch.manual_seed(0)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    encoder = MultiModalEncoder().to(device).eval()
    requests = [[torch.rand(3, 16, 12), torch.rand(3, 8, 8)], [torch.rand(3, 20, 20)]]
    with torch.no_grad():
        for images in requests:
            embeddings = encoder.get_image_embeddings(images)
            print(len(images), tuple(embeddings.shape), round(embeddings.mean().item(), 5))


if __name__ == "__main__":
    main()

# source: monniert/differentiable-blocksworld#2
# mechanism: a table of values per block is made with linspace on the CPU and is looked up with face indices that a renderer gives on the GPU
# expect: raises
import torch
from torch import nn


class Rasterizer(nn.Module):
    """Gives each pixel the index of the face that covers it, or -1."""

    def __init__(self, size):
        super().__init__()
        ys, xs = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
        self.register_buffer("pixels", torch.stack([xs, ys], dim=-1).float() / size)

    def forward(self, centers):
        dist = (self.pixels[None, :, :, None] - centers[:, None, None]).norm(dim=-1)
        value, face = dist.min(dim=-1)
        return torch.where(value < 0.3, face, torch.full_like(face, -1))


class BlockScene(nn.Module):
    def __init__(self, n_blocks=4, faces_per_block=3, size=8):
        super().__init__()
        self.n_blocks = n_blocks
        self.faces_per_block = faces_per_block
        self.centers = nn.Parameter(torch.rand(n_blocks * faces_per_block, 2))
        self.opacity_logit = nn.Parameter(torch.randn(n_blocks))
        self.background = nn.Parameter(torch.rand(3))
        self.colors = nn.Parameter(torch.rand(n_blocks, 3))
        self.rasterizer = Rasterizer(size)

    @property
    def device(self):
        return self.background.device

    def get_opacities(self):
        return torch.sigmoid(self.opacity_logit)

    def forward(self, batch_size):
        face = self.rasterizer(self.centers.expand(batch_size, -1, -1))
        block = face.clamp(min=0) // self.faces_per_block
        visible = (face >= 0).unsqueeze(-1)
        color = self.colors[block] * self.get_opacities()[block].unsqueeze(-1)
        return torch.where(visible, color, self.background)

    @torch.no_grad()
    def segmentation(self, batch_size):
        face = self.rasterizer(self.centers.expand(batch_size, -1, -1))
        keep = self.get_opacities() > 0.5
        levels = torch.linspace(0, 1, self.n_blocks + 1)[1:]  # ROOT
        values = levels.repeat_interleave(self.faces_per_block)  # ALSO
        image = values[face.clamp(min=0)]  # RAISE # ALSO
        shown = keep.repeat_interleave(self.faces_per_block)[face.clamp(min=0)]
        return image * shown * (face >= 0)


class Trainer:
    def __init__(self, model, device, lr=1e-2):
        self.model = model.to(device)
        self.device = device
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=lr)

    def step(self, images):
        images = images.to(self.device)
        loss = (self.model(images.shape[0]) - images).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def visualize(self):
        self.model.eval()
        return self.model.segmentation(1).cpu()


if __name__ == "__main__":
    torch.manual_seed(0)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    trainer = Trainer(BlockScene(), device)
    for _ in range(2):
        print(trainer.step(torch.rand(2, 8, 8, 3)))
    print(trainer.visualize().shape)

# source: NarcissusEx/CuNeRF#8
# mechanism: the default device is a GPU by intention; a loader that shuffles draws there with a generator of the host
# phase: data; aten::randperm
# expect: raises
import math

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_default_device("cuda")


class Rays(Dataset):
    def __init__(self, side, views):
        grid = torch.cartesian_prod(torch.linspace(-1, 1, side), torch.linspace(-1, 1, side))
        self.origins, self.colors = [], []
        for view in range(views):
            turn = 2 * math.pi * view / views
            rotation = torch.tensor([[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]])
            self.origins.append(grid @ rotation)
            self.colors.append(torch.sinc(grid.norm(dim=1, keepdim=True)).expand(-1, 3))
        self.origins, self.colors = torch.cat(self.origins), torch.cat(self.colors)

    def __len__(self):
        return self.origins.shape[0]

    def __getitem__(self, k):
        return self.origins[k], self.colors[k]


class Field(nn.Module):
    def __init__(self, bands=3):
        super().__init__()
        self.register_buffer("bands", 2.0 ** torch.arange(bands))
        self.layers = nn.Sequential(nn.Linear(4 * bands, 16), nn.ReLU(), nn.Linear(16, 3), nn.Sigmoid())

    def forward(self, places):
        angles = (places.unsqueeze(-1) * self.bands).flatten(1)
        return self.layers(torch.cat([angles.sin(), angles.cos()], dim=1))


def fit(field, loader, epochs):
    optimizer = torch.optim.Adam(field.parameters(), lr=1e-2)
    for _ in range(epochs):
        for origins, colors in loader:  # RAISE
            optimizer.zero_grad()
            (field(origins) - colors).square().mean().backward()
            optimizer.step()


loader = DataLoader(Rays(side=4, views=3), batch_size=16, shuffle=True)  # ROOT
fit(Field(), loader, epochs=1)

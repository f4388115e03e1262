# source: none; what the cause about objects of modules must not speak of
# expect: raises
# A model keeps an archive of dataclasses whose tensors are on the host on purpose. Who takes one out has to move it.
import dataclasses

import torch
from torch import nn


@dataclasses.dataclass
class Page:
    ink: torch.Tensor


class Archive:
    def __init__(self):
        self.pages = []

    def keep(self, ink):
        self.pages.append(Page(ink.detach().cpu()))


class Reader(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.eye = nn.Linear(width, width)
        self.archive = Archive()

    def forward(self, ink):
        seen = self.eye(ink)
        for page in self.archive.pages:
            seen = seen + page.ink  # RAISE # ROOT
        self.archive.keep(seen)
        return seen


reader = Reader(3).to("cuda")
for _ in range(2):
    print(reader(torch.randn(2, 3, device="cuda")).sum())

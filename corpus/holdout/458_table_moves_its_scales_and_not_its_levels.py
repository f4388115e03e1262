# source: none; a lookup table whose own .to() makes a new one, and takes one of its two tensors over as it is
# mechanism: the new object is made of variables; one of them is bound to the attribute, unmoved
# phase: lookup
# expect: raises
import torch

dev = torch.device("cuda", 0)


class Levels:
    def __init__(self, spread, points, name="levels"):
        self.spread = spread
        self.points = points
        self.name = name

    def to(self, device):
        spread = self.spread.to(device)
        points = self.points  # ROOT
        name = f"{self.name}@{device}"
        moved = Levels(
            spread,
            points=points,  # ALSO
            name=name,
        )
        return moved

    def decode(self, codes):
        picked = self.points[codes]  # RAISE
        return picked * self.spread


levels = Levels(torch.rand(4, 1), torch.linspace(0, 1, 8)).to(dev)
codes = torch.randint(0, 8, (4, 3), device=dev)
print(levels.name, levels.decode(codes).shape)

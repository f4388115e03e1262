# source: none; a function with two devices among its arguments, by keywords in a dictionary of settings
# mechanism: a function cuts a map into tiles, works on one device and keeps the result on another, and takes that for its ruler
# phase: first tile; failing op: aten::div.Tensor
# expect: raises
import torch


def heights(ground, tile, shelf_device, bench_device):
    ruler = torch.linspace(1.0, 2.0, tile, device=shelf_device)  # ROOT
    kept = []
    for piece in ground.split(tile):
        piece = piece.to(bench_device)
        level = piece / ruler  # RAISE
        kept.append(level.to(shelf_device))
    return torch.cat(kept)


class Surveyor:
    def __init__(self, **settings):
        self.settings = settings

    def survey(self, ground):
        return heights(ground, **self.settings).mean()


print(Surveyor(tile=4, shelf_device="cpu", bench_device="cuda:0").survey(torch.ones(8)))

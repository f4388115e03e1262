# source: https://pytorch.org/docs/stable/notes/cuda.html
# expect: silent
# kinds: async-race
# A helper that copies a tree of tensors passes on how. One caller waits afterwards, the other one asks it not to wait, and reads.
import torch


def carried(tree, where, **how):
    if isinstance(tree, torch.Tensor):
        return tree.to(where, **how)
    return {name: carried(branch, where, **how) for name, branch in tree.items()}


class Telescope:
    def __init__(self, side):
        self.state = carried({"sky": torch.rand(side, side), "dark": {"level": torch.rand(side)}}, "cuda:0")

    def saved(self):
        kept = carried(self.state, "cpu", non_blocking=True)
        torch.cuda.synchronize()
        return kept

    def glance(self):
        return carried(self.state, "cpu", non_blocking=True)  # ROOT


telescope = Telescope(64)
print(float(telescope.saved()["sky"].mean()))
print(float(telescope.glance()["sky"].mean()))  # RAISE

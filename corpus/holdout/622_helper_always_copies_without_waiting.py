# source: https://pytorch.org/docs/stable/notes/cuda.html
# expect: silent
# kinds: async-race
# Whether to wait is an attribute, which the line that copies asks for: no call says so, and that line is the one to see.
import torch


class Mirror:
    def __init__(self, eager):
        self.eager = eager

    def fetch(self, tensor, name=""):
        return name, tensor.to("cpu", non_blocking=self.eager)  # ROOT


mirror = Mirror(eager=True)
name, level = mirror.fetch(torch.rand(256, device="cuda:0"), name="level")
print(name, float(level.sum()))  # RAISE

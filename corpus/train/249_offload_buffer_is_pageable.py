# source: https://github.com/pytorch/pytorch/issues/19625
# expect: silent
# kinds: unpinned-async-copy
# Activations are offloaded into a buffer that was never pinned.
import torch

device = torch.device("cuda", 0)


class Offload:
    def __init__(self, size):
        self.buffer = torch.empty(size)  # ROOT

    def save(self, activation):
        self.buffer.copy_(activation, non_blocking=True)  # RAISE


offload = Offload((8, 8))
offload.save(torch.randn(8, 8, device=device))

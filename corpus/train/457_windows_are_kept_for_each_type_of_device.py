# source: none; overlap-add whose windows are kept in a table of the module, by length, dtype and the kind of device
# mechanism: the key of a cache has the type of the device; the second GPU finds the first one's window
# phase: forward of the second worker
# expect: raises
# needs: 2 GPUs
import torch

WINDOWS = {}


def window_of(length, like):
    kind = like.device.type  # ALSO
    key = (length, like.dtype, kind)  # ROOT
    found = WINDOWS.get(key)
    if found is None:  # ALSO
        ramp = torch.linspace(0, 3.14159, length, device=like.device, dtype=like.dtype)
        found = WINDOWS[key] = ramp.sin() ** 2
    return found  # ALSO


class Joiner:
    def __init__(self, hop):
        self.hop = hop

    def join(self, pieces):
        count, length = pieces.shape
        out = pieces.new_zeros(self.hop * (count - 1) + length)
        shaped = pieces * window_of(length, pieces)  # RAISE
        for k, piece in enumerate(shaped):
            out[k * self.hop : k * self.hop + length] += piece
        return out


joiner = Joiner(4)
for worker in range(2):
    chunks = torch.rand(5, 8).to(torch.device("cuda", worker))
    print(worker, joiner.join(chunks).norm().item())

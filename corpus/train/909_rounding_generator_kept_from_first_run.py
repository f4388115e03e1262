# source: Nerogar/OneTrainer PR#804 (review: device mismatch when you do a 2nd training run and the global generator was already initialized to another device)
# mechanism: [generator device] module-level generator created once, on the device of the first run, and reused by a run on another device
# phase: optimizer step of the second run; failing op: aten::randint ('Expected a 'cuda' device type for generator but found 'cpu'')
# expect: raises
# root: set_seed: if generator is None (fix: or generator.device != device)
import torch

dev = torch.device('cuda', 0)


_rng = None
def set_seed(seed, device):
    global _rng
    if _rng is None:  # ROOT
        _rng = torch.Generator(device=device)
    _rng.manual_seed(seed)

def round_into_(target, value):
    bits = torch.randint(0, 1 << 16, value.shape, dtype=torch.int32, device=value.device, generator=_rng)  # RAISE
    bits += value.view(torch.int32)
    bits &= -65536
    target.copy_(bits.view(torch.float32))

class Run:
    def __init__(self, device, seed):
        self.weight = torch.zeros(4, dtype=torch.bfloat16, device=device)
        self.seed = seed

    def train(self, steps):
        for step in range(steps):
            set_seed(self.seed + step, self.weight.device)
            round_into_(self.weight, self.weight.float() - 0.1)

Run(torch.device("cpu"), 0).train(2)
Run(dev, 7).train(2)

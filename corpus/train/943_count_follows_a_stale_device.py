# source: pytorch/rl PR#3368
# mechanism: [EMA / shadow copy] running mean moved leaf by leaf, its container still names the old device, and the counter is sent there
# phase: statistics update; failing op: aten::lerp (weight)
# expect: raises
# root: vecnorm.py:VecNormV2._apply: self._count.to(device=self._loc.device), stale after apply(fn)
import torch

dev = torch.device('cuda', 0)


class VecNorm:
    loc, count, device = torch.zeros(3), torch.ones(1), "cpu"

    def apply(self, fn):
        self.loc = fn(self.loc)  # ALSO
        self.count = self.count.to(self.device)  # ROOT

    def update(self, x):
        self.loc = self.loc.lerp(x.mean(0), 1 / self.count)  # RAISE

norm = VecNorm()
norm.apply(lambda t: t.to(dev))
norm.update(torch.randn(8, 3, device=dev))

# source: kornia/kornia#4536, PR#4546 (LinearIlluminationGenerator takes its device from the constructor's tuples)
# mechanism: [device asked of the wrong values] the samplers follow .to(), but the device of the ramp is asked of plain Python tuples, which means the CPU
# phase: augmentation; failing op: aten::mul
# expect: raises
import torch
import torch.nn as nn


def device_among(values):
    found = [v.device for v in values if torch.is_tensor(v)]
    return found[0] if found else torch.device("cpu")


class ShadeSampler(nn.Module):
    def __init__(self, depth=(0.1, 0.4), sense=(-1.0, 1.0)):
        super().__init__()
        self.depth, self.sense = depth, sense
        self.build(torch.device("cpu"))

    def build(self, device):
        bounds = lambda pair: [torch.tensor(v, device=device) for v in pair]
        self.depth_dist = torch.distributions.Uniform(*bounds(self.depth))
        self.sense_dist = torch.distributions.Uniform(*bounds(self.sense))

    def forward(self, shape):
        n, _, h, w = shape
        device = device_among([self.depth, self.sense])  # ROOT
        depth = self.depth_dist.sample((n, 1, 1, 1)).to(device)
        sense = self.sense_dist.sample((n, 1, 1, 1)).sign()  # ALSO
        ramp = torch.linspace(0, 1, w, device=device).expand(n, 1, h, w)
        return {"shade": sense * depth * ramp}  # RAISE


class RandomShade(nn.Module):
    def __init__(self):
        super().__init__()
        self.sampler = ShadeSampler()

    def to(self, device):
        self.sampler.build(torch.device(device))
        return super().to(device)

    def forward(self, batch):
        params = self.sampler(batch.shape)
        return (batch + params["shade"].to(batch)).clamp(0, 1)


aug = RandomShade().to("cuda:0")
batch = torch.rand(4, 3, 16, 16, device="cuda:0")
out = aug(batch)

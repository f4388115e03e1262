# source: iver56/torch-audiomentations#137, PR#138
# mechanism: [distribution parameters] two torch.distributions objects; one gets its bounds on the input's device, the other plain numbers, so its samples come on the CPU
# phase: augmentation; failing op: aten::mul of the two sampled parameters, in a later call than the sampling
# expect: raises
import torch
import torch.nn as nn
from torch.distributions import Uniform

dev = torch.device("cuda", 0)


class BandPassFilter(nn.Module):
    def __init__(self, min_center=200.0, max_center=4000.0, min_fraction=0.5, max_fraction=1.99):
        super().__init__()
        self.center, self.fraction = (min_center, max_center), (min_fraction, max_fraction)
        self.transform_parameters = {}

    def randomize_parameters(self, samples, sample_rate):
        batch_size = samples.shape[0]

        def get_dist(low, high):
            mels = 2595 * torch.log10(1 + torch.tensor([low, high], device=samples.device) / 700)
            return Uniform(low=mels[0], high=mels[1])

        center_dist = get_dist(*self.center)
        self.transform_parameters["center_freq"] = 700 * (10 ** (center_dist.sample((batch_size,)) / 2595) - 1)
        bandwidth_dist = Uniform(low=self.fraction[0], high=self.fraction[1])  # ROOT
        self.transform_parameters["bandwidth"] = bandwidth_dist.sample((batch_size,))  # ALSO

    def apply_transform(self, samples, sample_rate):
        center, width = self.transform_parameters["center_freq"], self.transform_parameters["bandwidth"]
        low = center * (1 - 0.5 * width) / sample_rate  # RAISE
        high = center * (1 + 0.5 * width) / sample_rate
        freq = torch.fft.rfftfreq(samples.shape[-1], device=samples.device)
        keep = (freq >= low[:, None]) & (freq <= high[:, None])
        return torch.fft.irfft(torch.fft.rfft(samples) * keep[:, None], n=samples.shape[-1])

    def forward(self, samples, sample_rate):
        self.randomize_parameters(samples, sample_rate)
        return self.apply_transform(samples, sample_rate)


augment = BandPassFilter().to(dev)
augment(torch.randn(4, 1, 512, device=dev), sample_rate=16000)

# source: phernst/pytorch_radon PR#2
# mechanism: [factory call without device=] ramp filter is made on the sinogram's device, the window of the subclass by torch.hann_window() and no device
# phase: filtered back-projection; failing op: aten::mul_ / mul
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class RampFilter(nn.Module):
    def create_filter(self, ramp):
        return ramp

    def forward(self, sino):
        n = sino.shape[2]
        size = max(64, 2 ** (2 * n - 1).bit_length())
        padded = nn.functional.pad(sino, (0, 0, 0, size - n))
        ramp = 2 * torch.fft.fftfreq(size, device=sino.device).abs().view(-1, 1)
        spectrum = torch.fft.fft(padded, dim=2) * self.create_filter(ramp)
        return torch.fft.ifft(spectrum, dim=2).real[:, :, :n]


class HannFilter(RampFilter):
    def window(self, n):
        return torch.hann_window(n, periodic=False).roll(n // 2)  # ROOT

    def create_filter(self, ramp):
        hann = self.window(ramp.shape[0])  # ALSO
        return ramp * hann.unsqueeze(-1)  # RAISE


class FBP(nn.Module):
    def __init__(self, filt):
        super().__init__()
        self.filter = filt

    def forward(self, sino):
        return self.filter(sino).mean(-1)


sino = torch.rand(1, 1, 16, 8, device=dev)
for filt in (RampFilter(), HannFilter()):
    FBP(filt).to(dev)(sino)

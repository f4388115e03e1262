# source: https://github.com/sbi-dev/sbi/issues/1954
# mechanism: a sampler stores the device that it was made for; its network is moved to another GPU later, and noise is still made on the first
# phase: sampling; aten::linear
# expect: raises
# needs: 2 GPUs
import torch

train_on, serve_on = "cuda:0", "cuda:1"


class Sampler:
    def __init__(self, width, device):
        self.width = width
        self._device = device  # ROOT
        self.decode = torch.nn.Linear(width, 2).to(device)

    def draw(self, count):
        noise = torch.randn(count, self.width, device=self._device)  # ALSO
        return self.decode(noise)  # RAISE


def fitted():
    sampler = Sampler(3, train_on)
    sampler.draw(4).square().mean().backward()
    return sampler


def served(sampler):
    sampler.decode.to(serve_on).eval()  # ALSO
    return sampler


print(served(fitted()).draw(2).shape)

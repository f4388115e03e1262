# source: mozilla/TTS#473, PR#549
# mechanism: [zero-dim scalar] torch.arange(n) with a CUDA 0-d n gives a CPU tensor; the CPU grid is then divided by the same CUDA 0-d length
# phase: loss; failing op: aten::div (cpu 2-D / cuda 0-d)
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class GuidedAttention(nn.Module):
    def __init__(self, sigma=0.4):
        super().__init__()
        self.sigma = sigma

    def soft_diagonal(self, ilen, olen):
        gy, gx = torch.meshgrid(torch.arange(olen), torch.arange(ilen), indexing="ij")  # ROOT
        return 1.0 - torch.exp(-(gy / olen - gx / ilen) ** 2 / (2 * self.sigma ** 2))  # RAISE

    def forward(self, att, ilens, olens):
        mask = torch.zeros_like(att)
        for b, (ilen, olen) in enumerate(zip(ilens, olens)):  # ALSO
            mask[b, :olen, :ilen] = self.soft_diagonal(ilen, olen)  # ALSO
        return (mask * att).mean()

att = torch.rand(2, 6, 4, device=dev).softmax(-1)
GuidedAttention()(att, torch.tensor([4, 3], device=dev), torch.tensor([6, 5], device=dev))

# source: DenOfEquity/webUI_ExtraSchedulers PR#3 (maintainer: moving `eps` is not necessary, randn_like puts it on the device of x already)
# mechanism: noise levels stay on the CPU as scalars of the loop, whose branches read them there; what must be on the GPU follows x by randn_like and new_ones
# phase: sampling
# expect: clean
import torch
from torch import nn


def append_zero(x):
    return torch.cat([x, x.new_zeros([1])])


def levels_karras(n, low, high, rho=7.):
    ramp = torch.linspace(0, 1, n)
    a, b = low ** (1 / rho), high ** (1 / rho)
    return append_zero((b + ramp * (a - b)) ** rho)


def to_d(x, sigma, denoised):
    return (x - denoised) / sigma


def ancestral_step(sigma_from, sigma_to, eta=1.):
    if not eta:
        return sigma_to, 0.
    up = min(sigma_to, eta * (sigma_to ** 2 * (sigma_from ** 2 - sigma_to ** 2) / sigma_from ** 2) ** 0.5)
    return (sigma_to ** 2 - up ** 2) ** 0.5, up


class MelodyNet(nn.Module):
    def __init__(self, dim=12):
        super().__init__()
        self.mix = nn.Conv1d(dim, dim, 3, padding=1)
        self.level = nn.Linear(1, dim)

    def forward(self, x, sigma):
        c = self.level(sigma.log()[:, None] / 4)
        return x / (1 + sigma[:, None, None] ** 2) + 0.1 * torch.tanh(self.mix(x) + c[:, :, None])


@torch.no_grad()
def sample_churned(model, x, sigmas, churn=4., s_noise=1.003, eta=0.6):
    s_in = x.new_ones([x.shape[0]])
    gamma = min(churn / (len(sigmas) - 1), 2 ** 0.5 - 1)
    for i in range(len(sigmas) - 1):
        sigma_hat = sigmas[i] * (gamma + 1)
        if gamma > 0:
            eps = torch.randn_like(x) * s_noise
            x = x + eps * (sigma_hat ** 2 - sigmas[i] ** 2) ** 0.5
        denoised = model(x, sigma_hat * s_in)
        down, up = ancestral_step(sigma_hat, sigmas[i + 1], eta=eta)
        d = to_d(x, sigma_hat, denoised)
        x = x + d * (down - sigma_hat)
        if sigmas[i + 1] > 0:
            x = x + torch.randn_like(x) * s_noise * up
    return x


def main():
    device = torch.device("cuda")
    model = MelodyNet().to(device).eval()
    sigmas = levels_karras(8, 0.05, 10.)
    x = torch.randn(3, 12, 40, device=device) * sigmas[0]
    out = sample_churned(model, x, sigmas)
    print(out.cpu().numpy().shape)


if __name__ == "__main__":
    main()

# source: CampusAI/Hamiltonian-Generative-Networks#75
# mechanism: a network of several parts samples its latent on the default device when it generates without an input
# expect: raises
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class HgnConfig:
    channels: int = 3
    frames: int = 3
    size: int = 8
    latent: int = 4
    delta: float = 0.1


class EncoderNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.conv = nn.Conv2d(cfg.channels * cfg.frames, 8, 3, stride=2, padding=1)
        self.mean = nn.Conv2d(8, cfg.latent, 1)
        self.logvar = nn.Conv2d(8, cfg.latent, 1)

    def forward(self, rollout):
        hidden = torch.relu(self.conv(rollout.flatten(1, 2)))
        mean, logvar = self.mean(hidden), self.logvar(hidden)
        noise = torch.randn_like(mean)
        return mean + noise * (0.5 * logvar).exp(), mean, logvar


class TransformerNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.net = nn.Conv2d(cfg.latent, 2 * cfg.latent, 3, padding=1)

    def forward(self, z):
        return self.net(z).chunk(2, dim=1)  # RAISE


class HamiltonianNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(2 * cfg.latent, 8, 3, padding=1), nn.Softplus())
        self.energy = nn.Linear(8, 1)

    def forward(self, q, p):
        return self.energy(self.net(torch.cat([q, p], dim=1)).mean(dim=(2, 3)))


class DecoderNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.net = nn.ConvTranspose2d(cfg.latent, cfg.channels, 2, stride=2)

    def forward(self, q):
        return torch.sigmoid(self.net(q))


class HGN:
    def __init__(self, cfg, device):
        self.cfg, self.device = cfg, torch.device(device)
        self.encoder = EncoderNet(cfg).to(self.device)
        self.transformer = TransformerNet(cfg).to(self.device)
        self.hnn = HamiltonianNet(cfg).to(self.device)
        self.decoder = DecoderNet(cfg).to(self.device)

    def parameters(self):
        for net in (self.encoder, self.transformer, self.hnn, self.decoder):
            yield from net.parameters()

    def integrate(self, q, p):
        with torch.enable_grad():
            q, p = q.detach().requires_grad_(), p.detach().requires_grad_()
            dq, dp = torch.autograd.grad(self.hnn(q, p).sum(), (q, p))
        return q + self.cfg.delta * dp, p - self.cfg.delta * dq

    def decode_from(self, z, n_steps):
        q, p = self.transformer(z)
        images = [self.decoder(q)]
        for _ in range(n_steps - 1):
            q, p = self.integrate(q, p)
            images.append(self.decoder(q))
        return torch.stack(images, dim=1)

    def forward(self, rollout):
        z, mean, logvar = self.encoder(rollout.to(self.device))
        return self.decode_from(z, rollout.size(1)), mean, logvar

    def latent_shape(self, n):
        side = self.cfg.size // 2
        return n, self.cfg.latent, side, side

    @torch.no_grad()
    def get_random_sample(self, n_steps):
        latent = torch.randn(self.latent_shape(1))  # ROOT
        return self.decode_from(latent, n_steps)  # ALSO


def train(hgn, steps):
    optimizer = torch.optim.Adam(hgn.parameters(), lr=1e-3)
    for _ in range(steps):
        rollout = torch.rand(2, hgn.cfg.frames, hgn.cfg.channels, hgn.cfg.size, hgn.cfg.size)
        images, mean, logvar = hgn.forward(rollout)
        kld = -0.5 * (1 + logvar - mean.pow(2) - logvar.exp()).mean()
        loss = (images - rollout.to(hgn.device)).pow(2).mean() + 1e-3 * kld
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


if __name__ == "__main__":
    torch.manual_seed(0)
    network = HGN(HgnConfig(), "cuda" if torch.cuda.is_available() else "cpu")
    print(train(network, 2))
    print(network.get_random_sample(4).shape)

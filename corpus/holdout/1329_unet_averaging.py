# source: huggingface/diffusers#2382
# mechanism: the average of a network's weights is built from a copy that was made before the network went to the GPU, and it is not brought there
# expect: raises
import copy
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Args:
    use_ema: bool = True
    steps: int = 3
    lr: float = 1e-3
    decay: float = 0.999
    device: str = "cuda"


class Denoiser(nn.Module):
    def __init__(self, dim=6, hidden=16):
        super().__init__()
        self.time = nn.Embedding(10, hidden)
        self.inp = nn.Linear(dim, hidden)
        self.out = nn.Linear(hidden, dim)

    def forward(self, x, t):
        return self.out(torch.relu(self.inp(x) + self.time(t)))


class EMAModel:
    def __init__(self, parameters, decay):
        self.shadow_params = [p.clone().detach() for p in parameters]
        self.collected = None
        self.max_decay = decay
        self.optimization_step = 0

    def get_decay(self):
        return min(self.max_decay, (1 + self.optimization_step) / (10 + self.optimization_step))

    @torch.no_grad()
    def step(self, parameters):
        self.optimization_step += 1
        one_minus_decay = 1 - self.get_decay()
        for shadow, param in zip(self.shadow_params, parameters):
            if param.requires_grad:
                shadow.sub_(one_minus_decay * (shadow - param))  # RAISE # ALSO
            else:
                shadow.copy_(param)

    def to(self, device):
        self.shadow_params = [p.to(device) for p in self.shadow_params]

    def store(self, parameters):
        self.collected = [p.detach().clone() for p in parameters]

    def copy_to(self, parameters):
        for shadow, param in zip(self.shadow_params, parameters):
            param.data.copy_(shadow)

    def restore(self, parameters):
        for saved, param in zip(self.collected, parameters):
            param.data.copy_(saved)
        self.collected = None


class NoiseScheduler:
    def __init__(self, steps=10):
        self.alphas = torch.cumprod(1 - torch.linspace(1e-3, 0.2, steps), dim=0)

    def add_noise(self, x, noise, t):
        a = self.alphas.to(x.device)[t][:, None]
        return a.sqrt() * x + (1 - a).sqrt() * noise


def training_step(model, scheduler, batch):
    noise = torch.randn_like(batch)
    t = torch.randint(0, 10, (batch.size(0),), device=batch.device)
    return F.mse_loss(model(scheduler.add_noise(batch, noise, t), t), noise)


def train(args):
    torch.manual_seed(0)
    device = torch.device(args.device)
    unet = Denoiser()
    ema = None
    if args.use_ema:
        ema = EMAModel(unet.parameters(), args.decay)  # ALSO
    optimizer = torch.optim.AdamW(unet.parameters(), lr=args.lr)
    unet.to(device)  # ROOT
    scheduler = NoiseScheduler()
    for _ in range(args.steps):
        loss = training_step(unet, scheduler, torch.randn(4, 6).to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if ema is not None:
            ema.step(unet.parameters())
    if ema is not None:
        ema.store(unet.parameters())
        ema.copy_to(unet.parameters())
        averaged = copy.deepcopy(unet).cpu()
        ema.restore(unet.parameters())
        return loss.item(), averaged
    return loss.item(), unet


def main():
    for use_ema in (False, True):
        loss, model = train(Args(use_ema=use_ema))
        print(use_ema, round(loss, 4), next(model.parameters()).device)


if __name__ == "__main__":
    main()

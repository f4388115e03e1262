# source: easydiffusion/easydiffusion#561
# mechanism: a sampler's register_buffer brings every schedule tensor to the default CUDA device instead of the model's
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn


class Denoiser(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.conv1 = nn.Conv2d(2, width, 3, padding=1)
        self.conv2 = nn.Conv2d(width, 2, 3, padding=1)
        self.time = nn.Linear(1, width)

    def forward(self, x, t):
        shift = self.time(t[:, None].float() / 100)
        return self.conv2(torch.relu(self.conv1(x) + shift[:, :, None, None]))


class LatentDiffusion(nn.Module):
    def __init__(self, timesteps=20):
        super().__init__()
        self.num_timesteps = timesteps
        self.model = Denoiser()
        betas = torch.linspace(1e-3, 2e-2, timesteps)
        self.register_buffer("betas", betas)
        self.register_buffer("alphas_cumprod", torch.cumprod(1 - betas, dim=0))

    def apply_model(self, x, t):
        return self.model(x, t)

    @property
    def device(self):
        return self.betas.device


class DDIMSampler:
    def __init__(self, model):
        self.model = model

    def register_buffer(self, name, attr):
        if isinstance(attr, torch.Tensor) and attr.device != torch.device("cuda"):  # ALSO
            attr = attr.to(torch.device("cuda"))  # ROOT
        setattr(self, name, attr)

    def make_schedule(self, steps, eta=0.0):
        stride = self.model.num_timesteps // steps
        self.timesteps = list(range(0, self.model.num_timesteps, stride))
        alphas_cumprod = self.model.alphas_cumprod
        self.register_buffer("alphas_cumprod", alphas_cumprod)
        self.register_buffer("sqrt_one_minus_alphas_cumprod", (1 - alphas_cumprod).sqrt())
        previous = torch.cat([alphas_cumprod[:1], alphas_cumprod[:-1]])
        self.register_buffer("alphas_prev", previous)

    @torch.no_grad()
    def sample(self, steps, shape, seed=0):
        self.make_schedule(steps)
        gen = torch.Generator().manual_seed(seed)
        img = torch.randn(shape, generator=gen).to(self.model.device)
        for step in reversed(self.timesteps):
            ts = torch.full((shape[0],), step, device=self.model.device, dtype=torch.long)
            img = self.p_sample(img, ts)
        return img

    def p_sample(self, x, t):
        e_t = self.model.apply_model(x, t)
        a_t = self.alphas_cumprod.gather(0, t).view(-1, 1, 1, 1)  # RAISE
        a_prev = self.alphas_prev.gather(0, t).view(-1, 1, 1, 1)
        sqrt_one_minus = self.sqrt_one_minus_alphas_cumprod.gather(0, t).view(-1, 1, 1, 1)
        pred_x0 = (x - sqrt_one_minus * e_t) / a_t.sqrt()
        return a_prev.sqrt() * pred_x0 + (1 - a_prev).sqrt() * e_t


class RenderThread:
    def __init__(self, device):
        self.device = device
        torch.manual_seed(0)
        self.model = LatentDiffusion().to(device).eval()

    def make_images(self, count, steps):
        sampler = DDIMSampler(self.model)
        return sampler.sample(steps, (count, 2, 8, 8)).cpu()


def main():
    for index in range(torch.cuda.device_count()):
        images = RenderThread(torch.device("cuda", index)).make_images(2, 5)
        print("device", index, tuple(images.shape), round(images.mean().item(), 4))


if __name__ == "__main__":
    main()

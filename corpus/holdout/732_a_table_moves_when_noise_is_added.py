# source: kohya-ss/sd-scripts#2102, fix PR#2153
# mechanism: [state moved as a side effect] the scheduler's add_noise moves its own table to the GPU and keeps it there; the loss later looks the table up with CPU timesteps
# phase: loss; failing op: aten::index_select (cuda table, cpu index)
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class DDIMScheduler:
    def __init__(self, num_train_timesteps=50):
        betas = torch.linspace(0.00085 ** 0.5, 0.012 ** 0.5, num_train_timesteps) ** 2
        self.num_train_timesteps = num_train_timesteps
        self.alphas_cumprod = torch.cumprod(1 - betas, dim=0)

    def add_noise(self, original, noise, timesteps):
        self.alphas_cumprod = self.alphas_cumprod.to(device=original.device)  # ROOT
        alphas = self.alphas_cumprod.to(dtype=original.dtype)
        timesteps = timesteps.to(original.device)
        a = alphas[timesteps].view(-1, 1, 1, 1)
        return a.sqrt() * original + (1 - a).sqrt() * noise

def huber_threshold(kind, c, timesteps, scheduler):
    if kind == "constant":
        return torch.full((timesteps.shape[0],), c, device=timesteps.device)
    alphas = torch.index_select(scheduler.alphas_cumprod, 0, timesteps.cpu())  # RAISE  # ALSO
    sigmas = ((1 - alphas) / alphas) ** 0.5
    return ((1 - c) / (1 + sigmas) ** 2 + c).to(timesteps.device)

def conditional_loss(pred, target, delta):
    delta = delta.view(-1, 1, 1, 1)
    return (2 * delta * (((pred - target) ** 2 + delta ** 2).sqrt() - delta)).mean()

unet = nn.Conv2d(4, 4, 3, padding=1).to(dev)
scheduler = DDIMScheduler()
latents = torch.randn(2, 4, 8, 8, device=dev)
noise = torch.randn_like(latents)
timesteps = torch.randint(0, scheduler.num_train_timesteps, (2,), device=dev)
noisy = scheduler.add_noise(latents, noise, timesteps)
pred = unet(noisy)
loss = conditional_loss(pred, noise, huber_threshold("snr", 0.1, timesteps, scheduler))
loss.backward()

# source: vllm-project/vllm-omni#6125
# mechanism: the pipeline puts the prompt on the device of the text encoder's parameters, which an offload hook keeps on the CPU until the forward itself starts
# expect: raises
import torch
from torch import nn


class SequentialOffloadHook:
    def __init__(self, compute_device):
        self.compute_device = compute_device
        self.others = []

    def pre_forward(self, module, args):
        for other in self.others:
            other.to("cpu")
        module.to(self.compute_device)  # ALSO

    @classmethod
    def enable(cls, modules, compute_device):
        for module in modules:
            module.to("cpu")
            hook = cls(compute_device)
            hook.others = [m for m in modules if m is not module]
            module.register_forward_pre_hook(hook.pre_forward)


class ClipText(nn.Module):
    def __init__(self, vocab=64, dim=12, max_len=10):
        super().__init__()
        self.token = nn.Embedding(vocab, dim)
        self.position = nn.Embedding(max_len, dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, input_ids):
        positions = torch.arange(input_ids.size(1), device=input_ids.device)
        hidden = self.token(input_ids) + self.position(positions)  # RAISE
        return self.proj(hidden)


class UNet(nn.Module):
    def __init__(self, channels=4, ctx=12):
        super().__init__()
        self.inp = nn.Conv2d(channels, 8, 3, padding=1)
        self.ctx = nn.Linear(ctx, 8)
        self.out = nn.Conv2d(8, channels, 3, padding=1)

    def forward(self, latents, t, context):
        shift = self.ctx(context).mean(1) + t
        return self.out(torch.relu(self.inp(latents) + shift[:, :, None, None]))


class VAE(nn.Module):
    def __init__(self, channels=4):
        super().__init__()
        self.decoder = nn.ConvTranspose2d(channels, 3, 2, stride=2)

    def forward(self, latents):
        return self.decoder(latents).clamp(-1, 1)


class SDXLPipeline:
    def __init__(self, device, enable_cpu_offload=False):
        self.device = torch.device(device)
        self.text_encoder, self.unet, self.vae = ClipText(), UNet(), VAE()
        modules = [self.text_encoder, self.unet, self.vae]
        if enable_cpu_offload:
            SequentialOffloadHook.enable(modules, self.device)
        else:
            for module in modules:
                module.to(self.device)

    def tokenize(self, prompts, max_len=10):
        ids = torch.zeros(len(prompts), max_len, dtype=torch.long)
        for row, prompt in enumerate(prompts):
            codes = [ord(c) % 64 for c in prompt][:max_len]
            ids[row, : len(codes)] = torch.tensor(codes)
        return ids

    def encode_prompt(self, prompts, negative=""):
        device = next(self.text_encoder.parameters()).device  # ROOT
        input_ids = self.tokenize(prompts).to(device)
        negative_ids = self.tokenize([negative] * len(prompts)).to(device)
        embeds = self.text_encoder(torch.cat([negative_ids, input_ids]))  # ALSO
        return embeds

    @torch.no_grad()
    def __call__(self, prompts, steps=2, guidance=5.0):
        embeds = self.encode_prompt(prompts)
        latents = torch.randn(len(prompts), 4, 4, 4, device=self.device)
        for t in torch.linspace(1, 0, steps, device=self.device):
            noise = self.unet(torch.cat([latents] * 2), t, embeds)
            uncond, cond = noise.chunk(2)
            latents = latents - 0.1 * (uncond + guidance * (cond - uncond))
        return self.vae(latents).cpu()


if __name__ == "__main__":
    torch.manual_seed(0)
    for offload in (False, True):
        pipeline = SDXLPipeline("cuda", enable_cpu_offload=offload)
        print(offload, pipeline(["a cat", "a dog in snow"]).shape)

# source: instantX-research/InstantID#205
# mechanism: the resampler of face embeddings is no component of the pipeline, so model offload leaves it where it was loaded, and the face embedding goes to the execution device
# expect: raises
import torch
from torch import nn


class Resampler(nn.Module):
    def __init__(self, dim=8, queries=3, embedding_dim=16, output_dim=12):
        super().__init__()
        self.latents = nn.Parameter(torch.randn(1, queries, dim) / dim**0.5)
        self.proj_in = nn.Linear(embedding_dim, dim)
        self.attn = nn.Linear(dim, dim)
        self.proj_out = nn.Linear(dim, output_dim)

    def forward(self, x):
        latents = self.latents.repeat(x.size(0), 1, 1)
        x = self.proj_in(x)  # RAISE
        weights = (self.attn(latents) @ x.transpose(1, 2)).softmax(-1)
        return self.proj_out(latents + weights @ x)


class TextEncoder(nn.Module):
    def __init__(self, vocab=64, dim=12):
        super().__init__()
        self.table = nn.Embedding(vocab, dim)

    def forward(self, ids):
        return self.table(ids)


class UNet(nn.Module):
    def __init__(self, channels=4, dim=12):
        super().__init__()
        self.inp = nn.Linear(channels, dim)
        self.out = nn.Linear(dim, channels)

    def forward(self, latents, context):
        return self.out(torch.relu(self.inp(latents) + context.mean(1, keepdim=True)))


class InstantPipeline:
    component_names = ("text_encoder", "unet")

    def __init__(self):
        self.text_encoder, self.unet = TextEncoder(), UNet()
        self.image_proj_model = None
        self._offload_device = None

    @property
    def components(self):
        return [getattr(self, name) for name in self.component_names]

    @property
    def device(self):
        return next(self.unet.parameters()).device

    @property
    def _execution_device(self):
        return self._offload_device or self.device

    def to(self, device):
        for module in self.components:
            module.to(device)
        if self.image_proj_model is not None:
            self.image_proj_model.to(device)
        return self

    def enable_model_cpu_offload(self, device="cuda"):
        self._offload_device = torch.device(device)
        for module in self.components:
            module.to("cpu")
            module.register_forward_pre_hook(lambda mod, args: mod.to(self._offload_device) and None)
            module.register_forward_hook(lambda mod, args, out: mod.to("cpu") and None)

    def load_ip_adapter_instantid(self, state_dict, scale=0.5):
        image_proj_model = Resampler().eval()
        image_proj_model.load_state_dict(state_dict)
        self.image_proj_model = image_proj_model.to(self.device)
        self.ip_scale = scale

    def encode_prompt(self, prompt, device):
        ids = torch.tensor([[ord(c) % 64 for c in prompt]], device=device)
        return self.text_encoder(ids)

    def _encode_prompt_image_emb(self, prompt_image_emb, device, dtype):
        emb = torch.as_tensor(prompt_image_emb)
        emb = emb.reshape(1, -1, 16)
        emb = torch.cat([torch.zeros_like(emb), emb], dim=0)
        emb = emb.to(device=device, dtype=dtype)  # ROOT
        emb = self.image_proj_model(emb)  # ALSO
        return emb.to(device)

    @torch.no_grad()
    def __call__(self, prompt, image_embeds, steps=2, guidance=3.0):
        device = self._execution_device
        text = self.encode_prompt(prompt, device)
        face = self._encode_prompt_image_emb(image_embeds, device, text.dtype)
        uncond, cond = face.chunk(2)
        latents = torch.randn(1, 6, 4, device=device)
        for _ in range(steps):
            positive = self.unet(latents, torch.cat([text, self.ip_scale * cond], dim=1))
            negative = self.unet(latents, torch.cat([text, self.ip_scale * uncond], dim=1))
            latents = latents - 0.1 * (negative + guidance * (positive - negative))
        return latents.cpu()


def build(checkpoint, offload):
    torch.manual_seed(0)
    pipe = InstantPipeline()
    pipe.load_ip_adapter_instantid(checkpoint)
    if offload:
        pipe.enable_model_cpu_offload()
    else:
        pipe.to("cuda")
    return pipe


def main():
    checkpoint = Resampler().state_dict()
    face = [0.1 * i for i in range(16)]
    for offload in (False, True):
        print(offload, build(checkpoint, offload)("portrait of a person", face).shape)


if __name__ == "__main__":
    main()

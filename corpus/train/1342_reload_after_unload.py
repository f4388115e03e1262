# source: hiddenswitch/pip-and-uv-installable-ComfyUI#65
# mechanism: unloading a model through one of its patcher's clones moves the shared weights to the CPU and clears that clone's record only, so the loader takes the other clone for loaded
# expect: raises
import torch
from torch import nn


class DiT(nn.Module):
    def __init__(self, channels=4, dim=12):
        super().__init__()
        self.condition_proj = nn.Linear(8, dim)
        self.body = nn.Linear(channels, dim)
        self.out = nn.Linear(dim, channels)

    def preprocess_text_embeds(self, context):
        return self.condition_proj(context)  # RAISE

    def forward(self, latent, context):
        hidden = self.preprocess_text_embeds(context).mean(1, keepdim=True) + self.body(latent)
        return self.out(torch.relu(hidden))


class ModelPatcher:
    def __init__(self, model, load_device, offload_device="cpu"):
        self.model = model
        self.load_device = torch.device(load_device)
        self.offload_device = torch.device(offload_device)
        self.options = {}
        self.loaded_size = 0

    def size(self):
        return sum(p.numel() * p.element_size() for p in self.model.parameters())

    def current_device(self):
        return next(self.model.parameters()).device

    def clone(self):
        other = ModelPatcher(self.model, self.load_device, self.offload_device)
        other.options = dict(self.options)
        other.loaded_size = self.loaded_size
        return other

    def is_clone(self, other):
        return self.model is other.model

    def load(self):
        if self.loaded_size == self.size():  # ROOT
            return
        self.model.to(self.load_device)
        self.loaded_size = self.size()

    def detach(self):
        self.model.to(self.offload_device)
        self.loaded_size = 0


class ModelManagement:
    def __init__(self):
        self.current = []

    def load_models_gpu(self, patchers):
        for patcher in patchers:
            patcher.load()
            if not any(patcher.is_clone(p) for p in self.current):  # ALSO
                self.current.append(patcher)

    def unload_model_and_clones(self, patcher):
        kept = []
        for loaded in self.current:
            if loaded.is_clone(patcher):
                loaded.detach()  # ALSO
            else:
                kept.append(loaded)
        self.current = kept


class Guider:
    def __init__(self, management, patcher, context):
        self.management, self.patcher, self.context = management, patcher, context

    @torch.no_grad()
    def sample(self, latent, steps):
        self.management.load_models_gpu([self.patcher])
        device = self.patcher.load_device
        latent, context = latent.to(device), self.context.to(device)
        for _ in range(steps):
            latent = latent - self.patcher.model(latent, context) / steps
        return latent.cpu()


class LatentUpscaler:
    def __init__(self, management, device):
        self.management = management
        self.patcher = ModelPatcher(nn.Conv1d(4, 4, 3, padding=1), device)

    @torch.no_grad()
    def __call__(self, latent):
        self.management.load_models_gpu([self.patcher])
        doubled = latent.repeat_interleave(2, dim=1).to(self.patcher.load_device)
        out = self.patcher.model(doubled.transpose(1, 2)).transpose(1, 2).cpu()
        self.management.unload_model_and_clones(self.patcher)
        return out


def tiled_upscale(management, guider, upscaler, latent, tiles, free_model):
    outputs = []
    for tile in latent.chunk(tiles, dim=1):
        if free_model:
            management.unload_model_and_clones(guider.patcher)
        outputs.append(guider.sample(upscaler(tile), 2))
    return torch.cat(outputs, dim=1)


def main():
    torch.manual_seed(0)
    management = ModelManagement()
    base = ModelPatcher(DiT(), "cuda")
    management.load_models_gpu([base])
    patched = base.clone()
    patched.options["shift"] = 3.0
    guider = Guider(management, patched, torch.randn(1, 5, 8))
    upscaler = LatentUpscaler(management, "cuda")
    latent = guider.sample(torch.randn(1, 8, 4), 2)
    for free_model in (False, True):
        print(tiled_upscale(management, guider, upscaler, latent, 2, free_model).shape)


if __name__ == "__main__":
    main()

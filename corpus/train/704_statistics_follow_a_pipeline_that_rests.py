# source: huggingface/diffusers#8523
# mechanism: with model offload the components rest on the CPU, so pipeline.device says cpu while the run uses the execution device; latent mean and std are moved to pipeline.device
# phase: img2img, prepare latents; failing op: aten::sub
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)

class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.config = {"latents_mean": [0.1, -0.2, 0.3, 0.0], "latents_std": [1.1, 0.9, 1.0, 1.2], "scaling_factor": 0.5}
        self.encoder = nn.Conv2d(3, 4, 4, stride=4)
    def forward(self, image):
        return self.encoder(image)

class Img2ImgPipeline:
    def __init__(self, vae):
        self.vae, self._offload_device = vae, None
    @property
    def device(self):
        return next(self.vae.parameters()).device
    @property
    def _execution_device(self):
        return self._offload_device or self.device
    def enable_model_cpu_offload(self, device):
        self._offload_device = device
        self.vae.register_forward_pre_hook(lambda module, args: module.to(device) and None)
        self.vae.register_forward_hook(lambda module, args, out: module.to("cpu") and None)
    def prepare_latents(self, image, device):
        config = self.vae.config
        stats = [torch.tensor(config[k]).view(1, 4, 1, 1) for k in ("latents_mean", "latents_std")]
        latents = self.vae(image.to(device))
        mean, std = [s.to(device=self.device, dtype=latents.dtype) for s in stats]  # ROOT
        return (latents - mean) * config["scaling_factor"] / std  # RAISE

    def __call__(self, image):
        return self.prepare_latents(image, self._execution_device)

pipe = Img2ImgPipeline(Autoencoder())
pipe.enable_model_cpu_offload(dev)
with torch.no_grad():
    pipe(torch.rand(1, 3, 16, 16))

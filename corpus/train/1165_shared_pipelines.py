# source: huggingface/diffusers#7891
# mechanism: two pipelines share their components and each remembers by itself which one is on the GPU, so one offloads what the other believes to be loaded
# expect: raises
import torch
from torch import nn


class AutoEncoder(nn.Module):
    def __init__(self, latent=4):
        super().__init__()
        self.encoder = nn.Conv2d(3, latent, 4, stride=4)
        self.decoder = nn.ConvTranspose2d(latent, 3, 4, stride=4)

    def encode(self, images):
        return self.encoder(images)  # RAISE

    def decode(self, latents):
        return self.decoder(latents).sigmoid()


class UNet(nn.Module):
    def __init__(self, latent=4):
        super().__init__()
        self.conv = nn.Conv2d(latent, latent, 3, padding=1)
        self.time = nn.Embedding(10, latent)

    def forward(self, latents, step):
        return self.conv(latents) + self.time(step)[:, :, None, None]


class OffloadingPipeline:
    def __init__(self, components, device, keep_last=True):
        self.components = components
        self.execution_device = torch.device(device)
        self.keep_last = keep_last
        self.loaded = None

    def use(self, name):
        module = self.components[name]
        if self.loaded != name:  # ROOT
            if self.loaded is not None:
                self.components[self.loaded].to("cpu")
            module.to(self.execution_device)
            self.loaded = name
        return module  # ALSO

    def free_modules(self):
        for module in self.components.values():
            module.to("cpu")
        self.loaded = None

    def finish(self, images):
        if not self.keep_last:
            self.free_modules()
        return images.cpu()


class Image2Image(OffloadingPipeline):
    @torch.no_grad()
    def __call__(self, images, steps=3, strength=0.5):
        latents = self.use("vae").encode(images.to(self.execution_device))
        unet = self.use("unet")
        for step in range(steps):
            t = torch.full((len(latents),), step, device=latents.device)
            latents = latents - strength * unet(latents, t)
        return self.finish(self.use("vae").decode(latents))


class Inpaint(OffloadingPipeline):
    @torch.no_grad()
    def __call__(self, images, masks, steps=3):
        images = images.to(self.execution_device)
        masks = nn.functional.interpolate(masks.to(self.execution_device), scale_factor=0.25)
        known = self.use("vae").encode(images)
        latents = torch.zeros_like(known)
        unet = self.use("unet")
        for step in range(steps):
            t = torch.full((len(latents),), step, device=latents.device)
            latents = masks * (latents - 0.1 * unet(latents, t)) + (1 - masks) * known
        return self.finish(self.use("vae").decode(latents))


class FaceServer:
    def __init__(self, device):
        torch.manual_seed(0)
        components = {"vae": AutoEncoder().eval(), "unet": UNet().eval()}
        self.tasks = {
            "edit": Image2Image(components, device),
            "fill": Inpaint(components, device, keep_last=False),
        }

    def handle(self, request):
        arguments = {key: value for key, value in request.items() if key != "task"}
        return self.tasks[request["task"]](**arguments)


def main():
    server = FaceServer("cuda:0" if torch.cuda.is_available() else "cpu")
    images, masks = torch.rand(1, 3, 16, 16), torch.ones(1, 1, 16, 16)
    queue = [
        {"task": "edit", "images": images},
        {"task": "fill", "images": images, "masks": masks},
        {"task": "edit", "images": images, "strength": 0.3},
    ]
    for request in queue:
        print(request["task"], round(server.handle(request).mean().item(), 4))


if __name__ == "__main__":
    main()

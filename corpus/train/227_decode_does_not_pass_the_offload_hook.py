# source: huggingface/diffusers PR#2285
# mechanism: a hook brings a model's weights to the GPU when it is called; the pipeline calls its decode() instead
# phase: sampling; aten::linear
# expect: raises
import torch

dev = torch.device("cuda", 0)


class Autoencoder(torch.nn.Module):
    def __init__(self, pixels, code):
        super().__init__()
        self.encoder, self.decoder = torch.nn.Linear(pixels, code), torch.nn.Linear(code, pixels)

    def encode(self, images):
        return self.encoder(images)

    def decode(self, codes):
        return torch.sigmoid(self.decoder(codes))  # RAISE

    def forward(self, images):
        return self.decode(self.encode(images))


class Pipeline:
    def __init__(self, denoiser, autoencoder):
        self.denoiser, self.autoencoder = denoiser, autoencoder

    def enable_offload(self, device):
        def bring(module, args):
            module.to(device)

        for model in (self.denoiser, self.autoencoder):
            model.to("cpu")
            model.register_forward_pre_hook(bring)  # ROOT

    @torch.no_grad()
    def __call__(self, codes, steps):
        for _ in range(steps):
            codes = codes - 0.1 * self.denoiser(codes)
        return self.autoencoder.decode(codes)  # ALSO


pipeline = Pipeline(torch.nn.Linear(4, 4), Autoencoder(16, 4))
pipeline.enable_offload(dev)
pipeline(torch.randn(2, 4, device=dev), steps=3)

# source: huggingface/diffusers PR#13417 (vae.encode(...) goes inside of the with block of offload_models)
# mechanism: [offloading] a context manager brings the VAE to the GPU and takes it back, the encoding stands behind the block
# phase: training step; failing op: aten::convolution
# expect: raises
# root: train_dreambooth_lora_flux2.py:main: model_input = vae.encode(pixel_values) is indented into the block
from contextlib import contextmanager

import torch
import torch.nn as nn

dev = torch.device('cuda', 0)


@contextmanager
def offload_models(*modules, device, offload):
    if offload:
        homes = [next(m.parameters()).device for m in modules]
        for m in modules:
            m.to(device)
    try:
        yield
    finally:
        if offload:
            for m, home in zip(modules, homes):
                m.to(home)


class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 2, stride=2)

    def encode(self, x):
        return self.conv(x)                            # RAISE


vae = Vae().requires_grad_(False)
lora = nn.Linear(4, 4).to(dev)
batch = {"pixel_values": torch.rand(1, 3, 4, 4, device=dev)}
with offload_models(vae, device=dev, offload=True):
    pixel_values = batch["pixel_values"].to(dtype=vae.conv.weight.dtype)  # ALSO
model_input = vae.encode(pixel_values)                 # ROOT
loss = lora(model_input.flatten(2).transpose(1, 2)).square().mean()
loss.backward()

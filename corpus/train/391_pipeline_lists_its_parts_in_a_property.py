# source: huggingface/diffusers#1896
# mechanism: a pipeline moves what its property returns; a part that was added later is not in there
# phase: forward; aten::linear
# expect: raises
import torch
from torch import nn


class Pipeline:
    def __init__(self):
        self.text = nn.Embedding(10, 8)
        self.denoiser = nn.Linear(8, 8)
        self.decoder = nn.Linear(8, 3)
        self.filter = nn.Linear(3, 1)

    @property
    def parts(self):
        return {"text": self.text, "denoiser": self.denoiser, "decoder": self.decoder}  # ROOT

    def to(self, device):
        for name, part in self.parts.items():  # ALSO
            part.to(device)
        self.device = torch.device(device)
        return self

    def __call__(self, prompt):
        latent = self.denoiser(self.text(prompt.to(self.device)))
        image = self.decoder(latent)
        return image, self.filter(image)  # RAISE


pipeline = Pipeline().to("cuda")
pipeline(torch.arange(4))

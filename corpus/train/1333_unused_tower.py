# source: xdit-project/xDiT#715
# mechanism: to save memory the runner sends the unused vision tower of the text encoder to the CPU, and the tower holds the encoder's first parameter, by which the pipeline chooses the device of the prompt
# expect: raises
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class EngineArgs:
    device: str = "cuda"
    vae_on_cpu: bool = False
    steps: int = 2


class VisionTower(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.patch = nn.Linear(48, dim)

    def forward(self, pixels):
        return self.patch(pixels.flatten(1)).unsqueeze(1)


class LanguageTower(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.embed_tokens = nn.Embedding(vocab, dim)
        self.layers = nn.ModuleList(nn.Linear(dim, dim) for _ in range(2))

    def forward(self, input_ids):
        hidden = self.embed_tokens(input_ids)  # RAISE
        for layer in self.layers:
            hidden = hidden + torch.tanh(layer(hidden))
        return hidden


class PretrainedEncoder(nn.Module):
    def __init__(self, vocab=64, dim=16):
        super().__init__()
        self.vision_tower = VisionTower(dim)
        self.language_model = LanguageTower(vocab, dim)

    @property
    def device(self):
        return next(self.parameters()).device  # ALSO

    def forward(self, input_ids, pixels=None):
        hidden = self.language_model(input_ids)
        if pixels is not None:
            hidden = torch.cat([self.vision_tower(pixels), hidden], dim=1)
        return hidden


class DiT(nn.Module):
    def __init__(self, dim=16, channels=4):
        super().__init__()
        self.context = nn.Linear(dim, channels)
        self.body = nn.Linear(channels, channels)

    def forward(self, latents, embeds):
        return self.body(latents) + self.context(embeds).mean(1, keepdim=True)


class FluxLikePipeline:
    def __init__(self):
        self.text_encoder = PretrainedEncoder()
        self.transformer = DiT()
        self.vae = nn.Linear(4, 12)

    def to(self, device):
        for part in (self.text_encoder, self.transformer, self.vae):
            part.to(device)
        return self

    def encode_prompt(self, prompt):
        device = self.text_encoder.device  # ALSO
        ids = torch.tensor([[ord(c) % 64 for c in prompt]])
        return self.text_encoder(ids.to(device))  # ALSO

    @torch.no_grad()
    def __call__(self, prompt, steps, device):
        embeds = self.encode_prompt(prompt).to(device)
        latents = torch.randn(1, 8, 4, device=device)
        for _ in range(steps):
            latents = latents - 0.2 * self.transformer(latents, embeds)
        vae_device = self.vae.weight.device
        return self.vae(latents.to(vae_device)).cpu()


class ModelRunner:
    def __init__(self, args):
        self.args = args
        self.device = torch.device(args.device)
        self.pipe = None

    def load(self):
        torch.manual_seed(0)
        self.pipe = FluxLikePipeline().to(self.device)
        self.post_load()

    def post_load(self):
        self.pipe.text_encoder.vision_tower.to("cpu")  # ROOT
        if self.args.vae_on_cpu:
            self.pipe.vae.to("cpu")

    def run(self, prompts):
        return [self.pipe(p, self.args.steps, self.device).mean().item() for p in prompts]


def main():
    runner = ModelRunner(EngineArgs(vae_on_cpu=True))
    runner.load()
    print(runner.run(["a harbour", "fog"]))


if __name__ == "__main__":
    main()

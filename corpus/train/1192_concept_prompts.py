# source: huggingface/diffusers#3922
# mechanism: offload hooks bring each layer to the GPU for its call; an embedding that replaces one of these layers later has no hook
# expect: raises
import torch
from torch import nn


class OffloadHook:
    def __init__(self, device):
        self.device = torch.device(device)

    def pre_forward(self, module, args):
        module.to(self.device)
        return tuple(a.to(self.device) if isinstance(a, torch.Tensor) else a for a in args)

    def post_forward(self, module, args, output):
        module.to("cpu")
        return output

    def attach(self, module):
        return [
            module.register_forward_pre_hook(self.pre_forward),
            module.register_forward_hook(self.post_forward),
        ]


class Tokenizer:
    def __init__(self, words):
        self.vocab = {word: i for i, word in enumerate(words)}

    def __len__(self):
        return len(self.vocab)

    def add_token(self, token):
        self.vocab[token] = len(self.vocab)
        return self.vocab[token]

    def __call__(self, prompt):
        return torch.tensor([[self.vocab[word] for word in prompt.split()]])


class TextEncoder(nn.Module):
    def __init__(self, vocab, dim=8):
        super().__init__()
        self.tokens = nn.Embedding(vocab, dim)
        self.mix = nn.Linear(dim, dim)
        self.norm = nn.LayerNorm(dim)

    def resize_token_embeddings(self, count):
        old = self.tokens.weight.data
        new = nn.Embedding(count, old.shape[1])
        new.weight.data[: len(old)] = old.to(new.weight.device)
        self.tokens = new  # ALSO

    def forward(self, ids):
        hidden = self.tokens(ids)  # RAISE
        return self.norm(self.mix(hidden).relu())


class UNet(nn.Module):
    def __init__(self, latent=4, dim=8):
        super().__init__()
        self.conv = nn.Conv2d(latent, latent, 3, padding=1)
        self.cond = nn.Linear(dim, latent)

    def forward(self, latents, context):
        return self.conv(latents) + self.cond(context.mean(1))[:, :, None, None]


class ConceptPipeline:
    def __init__(self, tokenizer, text_encoder, unet):
        self.tokenizer = tokenizer
        self.text_encoder = text_encoder.eval()
        self.unet = unet.eval()
        self.offload_device = None
        self.handles = []

    @property
    def execution_device(self):
        return self.offload_device or next(self.unet.parameters()).device

    def enable_sequential_cpu_offload(self, device):
        for handle in self.handles:
            handle.remove()
        self.handles = []
        self.offload_device = torch.device(device)
        hook = OffloadHook(device)
        for component in (self.text_encoder, self.unet):
            for module in component.modules():
                if not list(module.children()):
                    self.handles += hook.attach(module)

    def load_textual_inversion(self, state):
        for token, vector in state.items():
            index = self.tokenizer.add_token(token)
            self.text_encoder.resize_token_embeddings(len(self.tokenizer))  # ROOT
            with torch.no_grad():
                self.text_encoder.tokens.weight[index] = vector.to(self.text_encoder.tokens.weight.device)

    @torch.no_grad()
    def __call__(self, prompt, steps=2, seed=0):
        device = self.execution_device
        context = self.text_encoder(self.tokenizer(prompt).to(device))
        gen = torch.Generator().manual_seed(seed)
        latents = torch.randn(1, 4, 6, 6, generator=gen).to(device)
        for _ in range(steps):
            latents = latents - 0.1 * self.unet(latents, context)
        return latents.cpu()


def main():
    torch.manual_seed(0)
    tokenizer = Tokenizer(["a", "photo", "of", "cat", "house"])
    pipe = ConceptPipeline(tokenizer, TextEncoder(len(tokenizer)), UNet())
    pipe.enable_sequential_cpu_offload("cuda" if torch.cuda.is_available() else "cpu")
    print("plain", round(pipe("a photo of cat").mean().item(), 4))
    pipe.load_textual_inversion({"<toy>": torch.randn(8)})
    print("concept", round(pipe("a photo of <toy>").mean().item(), 4))


if __name__ == "__main__":
    main()

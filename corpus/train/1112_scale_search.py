# source: mit-han-lab/llm-awq#219
# mechanism: for the capture of the first layer's inputs only the embeddings go to the GPU; newer models also have a rotary module at the top, which stays on the CPU.
# expect: raises
import torch
from torch import nn


class Rotary(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer("inv_freq", 1.0 / 10000 ** (torch.arange(0, dim, 2).float() / dim))

    def forward(self, position_ids):
        freqs = torch.matmul(position_ids[:, :, None].float(), self.inv_freq[None, None])  # RAISE # ALSO
        return torch.cat([freqs, freqs], dim=-1)


class Layer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.proj = nn.Linear(dim, dim)

    def forward(self, x, rope):
        return x + self.proj(x * rope.cos())


class LlamaCore(nn.Module):
    def __init__(self, vocab=30, dim=16, layers=2):
        super().__init__()
        self.embed_tokens = nn.Embedding(vocab, dim)
        self.rotary_emb = Rotary(dim)
        self.layers = nn.ModuleList(Layer(dim) for _ in range(layers))

    def forward(self, input_ids):
        x = self.embed_tokens(input_ids)
        position_ids = torch.arange(x.shape[1], device=x.device)[None]
        rope = self.rotary_emb(position_ids)
        for layer in self.layers:
            x = layer(x, rope)
        return x


class StopForward(Exception):
    pass


class Catcher(nn.Module):
    def __init__(self, module, store):
        super().__init__()
        self.module = module
        self.store = store

    def forward(self, x, *args):
        self.store.update(inputs=x, args=args)
        raise StopForward


def move_embed(model, device):
    model.embed_tokens.to(device)  # ROOT


def capture_inputs(model, samples, device):
    store = {}
    move_embed(model, device)
    model.layers[0] = Catcher(model.layers[0].to(device), store)
    try:
        model(samples.to(device))
    except StopForward:
        pass
    model.layers[0] = model.layers[0].module.cpu()
    move_embed(model, "cpu")
    return store["inputs"], store["args"]


@torch.no_grad()
def run_awq(model, samples, device):
    inputs, args = capture_inputs(model, samples, device)
    scales = []
    for layer in model.layers:
        layer.to(device)
        scales.append(inputs.abs().mean(dim=(0, 1)).cpu())
        inputs = layer(inputs, *args)
        layer.cpu()
    return scales


def main():
    torch.manual_seed(0)
    model = LlamaCore().eval()
    scales = run_awq(model, torch.randint(0, 30, (2, 8)), torch.device("cuda:0"))
    print([round(s.mean().item(), 4) for s in scales])


if __name__ == "__main__":
    main()

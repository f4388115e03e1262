# source: casper-hansen/AutoAWQ#668
# mechanism: a module is moved to another GPU by hand while its dispatch hook goes on sending the inputs to the old one
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn


def send(value, device):
    if isinstance(value, torch.Tensor):
        return value.to(device)
    if isinstance(value, (tuple, list)):
        return type(value)(send(v, device) for v in value)
    return value


class AlignHook:
    def __init__(self, device):
        self.execution_device = torch.device(device)

    def __call__(self, module, args):
        return tuple(send(a, self.execution_device) for a in args)


def attach(module, device):
    module.to(device)
    module.hook = AlignHook(device)
    module.hook_handle = module.register_forward_pre_hook(module.hook)


def relocate(module, device):
    module.to(device)
    if getattr(module, "hook", None) is not None:
        module.hook.execution_device = torch.device(device)
    return module


class Rotary(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer("inv_freq", 1.0 / 100 ** (torch.arange(0, dim, 2).float() / dim))

    def forward(self, x, positions):
        freqs = positions.float()[:, None] * self.inv_freq  # RAISE
        emb = torch.cat([freqs, freqs], dim=-1)
        return emb.cos(), emb.sin()


class Layer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x, cos, sin):
        return x + torch.tanh(self.fc(x * cos + x.flip(-1) * sin))


class CausalLM(nn.Module):
    def __init__(self, vocab=20, dim=8, layers=2):
        super().__init__()
        self.embed_tokens = nn.Embedding(vocab, dim)
        self.layers = nn.ModuleList([Layer(dim) for _ in range(layers)])
        self.rotary_emb = Rotary(dim)

    def forward(self, ids):
        x = self.embed_tokens(ids)
        cos, sin = self.rotary_emb(x, torch.arange(ids.shape[1], device=ids.device))
        for layer in self.layers:
            x = layer(x, cos, sin)
        return x


def dispatch(model, device_map):
    for name, device in device_map.items():
        attach(model.get_submodule(name), device)
    return model


class Quantizer:
    def __init__(self, model, device="cuda:0"):
        self.model, self.device = model, device

    def move_embed(self):
        relocate(self.model.embed_tokens, self.device)
        self.model.rotary_emb = self.model.rotary_emb.to(self.device)  # ROOT

    @torch.no_grad()
    def collect(self, ids):
        self.move_embed()
        inputs = []
        handle = self.model.layers[0].register_forward_pre_hook(lambda m, a: inputs.append(a[0]))
        self.model(ids.to(self.device))
        handle.remove()
        return inputs[0]


def main():
    device_map = {"embed_tokens": "cuda:1", "layers.0": "cuda:0", "layers.1": "cuda:1", "rotary_emb": "cuda:1"}
    model = dispatch(CausalLM().eval(), device_map)
    print(Quantizer(model).collect(torch.randint(0, 20, (2, 5))).shape)


if __name__ == "__main__":
    main()

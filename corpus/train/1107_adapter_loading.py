# source: huggingface/transformers PR#30397
# mechanism: loading an adapter guesses a device by itself instead of taking the one where the model lies, so the adapter lands on the first GPU and the model is on the second.
# needs: 2 GPUs
# expect: raises
import os
import tempfile

import torch
from torch import nn


def infer_device():
    return torch.device("cuda:0" if torch.cuda.is_available() else "cpu")


def load_adapter_weights(path, device=None):
    if device is None:
        device = infer_device()
    return torch.load(path, map_location=device)


class LowRank(nn.Module):
    def __init__(self, base, rank=2):
        super().__init__()
        self.base = base
        self.down = nn.Parameter(torch.randn(rank, base.in_features) * 0.1)
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        return self.base(x) + x @ self.down.t() @ self.up.t()  # RAISE


class AdapterMixin:
    def adapter_state(self):
        return {k: v for k, v in self.state_dict().items() if k.endswith((".down", ".up"))}

    def save_adapter(self, folder):
        path = os.path.join(folder, "adapter.bin")
        torch.save(self.adapter_state(), path)
        return path

    def inject_adapter(self):
        for name, child in list(self.named_children()):
            if isinstance(child, nn.Linear):
                setattr(self, name, LowRank(child))

    def load_adapter(self, path, **load_kwargs):
        self.inject_adapter()
        weights = load_adapter_weights(path, **load_kwargs)  # ROOT
        result = self.load_state_dict(weights, strict=False, assign=True)  # ALSO
        if result.unexpected_keys:
            raise KeyError(result.unexpected_keys)
        return self  # ALSO


class Encoder(nn.Module, AdapterMixin):
    def __init__(self, vocab=30, dim=12):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.up_proj = nn.Linear(dim, 2 * dim)
        self.down_proj = nn.Linear(2 * dim, dim)

    @property
    def device(self):
        return self.embed.weight.device

    def forward(self, input_ids):
        hidden = self.embed(input_ids.to(self.device))
        return hidden + self.down_proj(torch.relu(self.up_proj(hidden)))


def train_adapter(folder):
    model = Encoder()
    model.inject_adapter()
    optimizer = torch.optim.SGD([p for n, p in model.named_parameters() if n.endswith(("up", "down"))], lr=0.1)
    model(torch.randint(0, 30, (2, 4))).pow(2).mean().backward()
    optimizer.step()
    return model.save_adapter(folder)


def main():
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        path = train_adapter(folder)
        model = Encoder().to("cuda:1").eval()
        model.load_adapter(path)  # ALSO
        with torch.no_grad():
            print(model(torch.randint(0, 30, (1, 5))).sum().item())


if __name__ == "__main__":
    main()

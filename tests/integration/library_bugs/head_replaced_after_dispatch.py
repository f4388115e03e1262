# source: intel/auto-round#1308
# mechanism: a module put in place after accelerate's dispatch_model has no hook and stays on the CPU
import torch
import torch.nn as nn
from accelerate import dispatch_model


class Layer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.attn = nn.MultiheadAttention(dim, 2, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, h):
        h = h + self.attn(h, h, h, need_weights=False)[0]
        return h + self.mlp(h)


class Backbone(nn.Module):
    def __init__(self, vocab=50, dim=16, depth=4, classes=1000):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.layers = nn.ModuleList(Layer(dim) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.score = nn.Linear(dim, classes)

    def forward(self, ids):
        h = self.embed(ids)
        for layer in self.layers:
            h = layer(h)
        return self.score(self.norm(h).mean(1))


def load_backbone():
    model = Backbone()
    device_map = {"embed": 0, "layers.0": 0, "layers.1": 0, "layers.2": 1, "layers.3": 1, "norm": 1, "score": 1}
    return dispatch_model(model, device_map)


def adapt(model, classes):
    for p in model.parameters():
        p.requires_grad_(False)
    model.score = nn.Linear(model.score.in_features, classes)  # ROOT
    return model


def finetune(steps=3):
    torch.manual_seed(0)
    model = adapt(load_backbone(), classes=3)
    opt = torch.optim.AdamW(model.score.parameters(), lr=1e-2)
    for _ in range(steps):
        ids, labels = torch.randint(0, 50, (4, 6)), torch.randint(0, 3, (4,))
        logits = model(ids)
        loss = nn.functional.cross_entropy(logits, labels.to(logits.device))
        opt.zero_grad()
        loss.backward()
        opt.step()


finetune()

# source: lightly-ai/lightly#993
# mechanism: the bank of a contrastive loss is a plain tensor attribute, which takes copies of features from the GPU and then meets them in a product
# expect: raises
import torch
import torch.nn.functional as F
from torch import nn


class MemoryBank(nn.Module):
    def __init__(self, size, dim):
        super().__init__()
        self.size = size
        bank = F.normalize(torch.randn(size, dim), dim=-1)
        self.bank = bank  # ROOT
        self.register_buffer("ptr", torch.zeros(1, dtype=torch.long), persistent=False)

    @torch.no_grad()
    def enqueue(self, batch):
        ptr, count = int(self.ptr), batch.shape[0]
        if ptr + count >= self.size:
            self.bank[ptr:] = batch[: self.size - ptr].detach()
            self.ptr.zero_()
        else:
            self.bank[ptr : ptr + count] = batch.detach()
            self.ptr += count

    def nearest(self, output, update=False):
        normalized = F.normalize(output, dim=-1)
        if update:
            self.enqueue(normalized)
        similarity = torch.einsum("nd,md->nm", normalized, self.bank)  # RAISE
        return self.bank[similarity.argmax(1)]


class Projection(nn.Sequential):
    def __init__(self, inp, hidden, out):
        super().__init__(
            nn.Linear(inp, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, out)
        )


class NNCLR(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(3, 4, 3, 2, 1), nn.ReLU(), nn.Flatten())
        self.projection = Projection(64, 16, dim)
        self.prediction = Projection(dim, 16, dim)
        self.memory = MemoryBank(size=16, dim=dim)

    def forward(self, x):
        z = self.projection(self.backbone(x))
        return z.detach(), self.prediction(z)


class NTXentLoss(nn.Module):
    def __init__(self, temperature=0.5):
        super().__init__()
        self.temperature = temperature

    def forward(self, a, b):
        logits = F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).T / self.temperature
        return F.cross_entropy(logits, torch.arange(len(a), device=a.device))


def two_views(images):
    jitter = 0.1 * torch.randn_like(images)
    return images + jitter, images.flip(-1)


def train(model, device, epochs=2):
    criterion = NTXentLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(epochs):
        x0, x1 = (v.to(device) for v in two_views(torch.rand(6, 3, 8, 8)))
        z0, p0 = model(x0)
        z1, p1 = model(x1)
        z0, z1 = model.memory.nearest(z0), model.memory.nearest(z1, update=True)
        loss = 0.5 * (criterion(z0, p1) + criterion(z1, p0))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


if __name__ == "__main__":
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    print(train(NNCLR().to(device), device))

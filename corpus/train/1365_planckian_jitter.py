# source: kornia/kornia#1921
# mechanism: a color augmentation keeps its table of coefficients as a plain attribute and picks rows of it for images on the GPU
# expect: raises
import torch
from torch import nn

BLACKBODY = [
    [0.6743, 0.4029, 0.0013],
    [0.6281, 0.4241, 0.1665],
    [0.5919, 0.4372, 0.2513],
    [0.5623, 0.4457, 0.3154],
    [0.5376, 0.4515, 0.3672],
]
CIED = [[0.5829, 0.4421, 0.2288], [0.5510, 0.4514, 0.2948], [0.5246, 0.4576, 0.3488]]
TABLES = {"blackbody": BLACKBODY, "CIED": CIED}


class PlanckianJitter(nn.Module):
    def __init__(self, mode="blackbody", select_from=None, p=1.0):
        super().__init__()
        if mode not in TABLES:
            raise ValueError("unknown mode %s" % mode)
        table = torch.tensor(TABLES[mode])
        if select_from is not None:
            table = table[list(select_from)]
        self.pl = table / table[:, 1:2]  # ALSO
        self.p = p
        self.register_buffer("seen", torch.zeros(1, dtype=torch.long))

    def generate_parameters(self, batch_size, device):
        idx = torch.randint(0, self.pl.shape[0], (batch_size,))
        keep = torch.rand(batch_size, device=device) < self.p
        return {"idx": idx, "keep": keep}

    def apply_transform(self, images, params):
        coeffs = self.pl[params["idx"]]  # ROOT
        r_w = coeffs[:, 0][..., None, None]
        b_w = coeffs[:, 2][..., None, None]
        red = images[:, 0] * r_w  # RAISE
        green = images[:, 1]
        blue = images[:, 2] * b_w
        return torch.stack([red, green, blue], dim=1).clamp_(max=1.0)

    def forward(self, images):
        params = self.generate_parameters(images.shape[0], images.device)
        self.seen += images.shape[0]
        out = self.apply_transform(images, params)
        return torch.where(params["keep"].view(-1, 1, 1, 1), out, images)


class Encoder(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.conv = nn.Conv2d(3, dim, 3, stride=2, padding=1)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        return nn.functional.normalize(self.proj(torch.relu(self.conv(x)).mean((2, 3))), dim=1)


class SelfSupervised(nn.Module):
    def __init__(self, temperature=0.2):
        super().__init__()
        self.encoder = Encoder()
        self.augment = PlanckianJitter(select_from=range(4))
        self.temperature = temperature

    def training_step(self, images):
        z1, z2 = self.encoder(self.augment(images)), self.encoder(self.augment(images))
        logits = z1 @ z2.t() / self.temperature
        targets = torch.arange(len(images), device=images.device)
        return nn.functional.cross_entropy(logits, targets)


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = SelfSupervised().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(2):
        images = torch.rand(5, 3, 8, 8).to(device, non_blocking=True)
        loss = model.training_step(images)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("loss %.3f, seen %d" % (loss.item(), model.augment.seen.item()))


if __name__ == "__main__":
    main()

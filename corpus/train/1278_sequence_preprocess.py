# source: lucidrains/tr-rosetta-pytorch#5
# mechanism: an early return for alignments of one sequence skips the move to the GPU that the usual path does at its end
# expect: raises
import torch
from torch import nn

ALPHABET = {c: i for i, c in enumerate("ARNDCQEGHILKMFPSTWYV-")}
N = len(ALPHABET)


def encode_alignment(rows):
    ids = [[ALPHABET[c] for c in row] for row in rows]
    return torch.tensor(ids, dtype=torch.long)


def reweight(msa, cutoff=0.8):
    identity = (msa.unsqueeze(0) == msa.unsqueeze(1)).float().mean(-1)
    return 1.0 / (identity >= cutoff).float().sum(-1)


def pair_statistics(onehot, weights):
    flat = onehot.flatten(1)
    mean = (flat * weights.unsqueeze(1)).sum(0) / weights.sum()
    centered = (flat - mean) * weights.sqrt().unsqueeze(1)
    cov = centered.t() @ centered / weights.sum()
    return cov


def pair_features(msa, device):
    depth, length = msa.shape
    if depth == 1:
        return torch.zeros(length, length, 1)  # ROOT
    onehot = nn.functional.one_hot(msa, N).float()
    cov = pair_statistics(onehot, reweight(msa))
    blocks = cov.reshape(length, N, length, N).permute(0, 2, 1, 3)
    return blocks.pow(2).sum((-1, -2)).sqrt().unsqueeze(-1).to(device)


def preprocess(rows, device):
    msa = encode_alignment(rows)
    length = msa.shape[1]
    first = nn.functional.one_hot(msa[0], N).float().to(device)
    row = first.unsqueeze(1).expand(length, length, N)
    col = first.unsqueeze(0).expand(length, length, N)
    pairs = pair_features(msa, device)  # ALSO
    x = torch.cat([row, col, pairs], dim=-1)  # RAISE # ALSO
    return x.permute(2, 0, 1).unsqueeze(0)


class ContactNet(nn.Module):
    def __init__(self, channels=8, bins=5):
        super().__init__()
        self.inp = nn.Conv2d(2 * N + 1, channels, 1)
        self.mid = nn.Conv2d(channels, channels, 3, padding=1)
        self.out = nn.Conv2d(channels, bins, 1)

    def forward(self, x):
        x = torch.relu(self.inp(x))
        x = x + torch.relu(self.mid(x))
        x = self.out(x)
        return 0.5 * (x + x.transpose(-1, -2))


@torch.no_grad()
def predict(models, rows, device):
    x = preprocess(rows, device)
    probs = [m(x).softmax(1) for m in models]
    return torch.stack(probs).mean(0).squeeze(0).cpu()


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    models = [ContactNet().to(device).eval() for _ in range(2)]
    families = {"deep": ["ARND-C", "ARNDQC", "AKNDQC"], "orphan": ["MKVLAT"]}
    for name, rows in families.items():
        print(name, predict(models, rows, device).argmax(0).float().mean().item())


if __name__ == "__main__":
    main()

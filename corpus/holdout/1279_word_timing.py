# source: openai/whisper#2561
# mechanism: a cost table is sent to the GPU with a bare .cuda(), which is the default one, while the alignment runs on the second GPU
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn


def skew(x):
    rows, cols = x.shape
    out = x.new_full((rows + cols - 1, rows), float("inf"))
    for i in range(rows):
        out[i:i + cols, i] = x[i]
    return out


def dtw_cost(x):
    rows, cols = x.shape
    diagonals = skew(x)
    cost = torch.full((rows + cols + 1, rows + 1), float("inf"))
    cost[0, 0] = 0
    if x.is_cuda:
        cost = cost.cuda()  # ROOT
    for k in range(1, rows + cols):
        best = torch.minimum(cost[k - 1, :-1], cost[k, :-1])
        if k > 1:
            best = torch.minimum(best, cost[k - 2, :-1])
        cost[k + 1, 1:] = diagonals[k - 1] + best.nan_to_num(posinf=1e4)  # RAISE
    return cost


def backtrace(cost, rows, cols):
    path, i, j = [], rows, cols
    while i > 0 and j > 0:
        path.append((i - 1, j - 1))
        steps = {(i - 1, j): cost[i + j - 1, i - 1].item(), (i, j - 1): cost[i + j - 1, i].item()}
        i, j = min(steps, key=steps.get)
    return path[::-1]


def dtw(x):
    cost = dtw_cost(x)
    return backtrace(cost.cpu(), *x.shape)


class CrossAttention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.q, self.k = nn.Linear(dim, dim), nn.Linear(dim, dim)

    def forward(self, text, audio):
        return (self.q(text) @ self.k(audio).t()).softmax(-1)


class SpeechModel(nn.Module):
    def __init__(self, vocab=20, dim=8, n_mels=4):
        super().__init__()
        self.tokens = nn.Embedding(vocab, dim)
        self.audio = nn.Linear(n_mels, dim)
        self.heads = nn.ModuleList([CrossAttention(dim) for _ in range(2)])

    @property
    def device(self):
        return next(self.parameters()).device


@torch.no_grad()
def find_alignment(model, tokens, mel):
    text = model.tokens(torch.tensor(tokens, device=model.device))
    audio = model.audio(mel.to(model.device))
    weights = torch.stack([head(text, audio) for head in model.heads])
    weights = (weights - weights.mean(-2, keepdim=True)) / weights.std(-2, keepdim=True)
    return dtw(-weights.mean(0))


def main():
    torch.manual_seed(0)
    device = torch.device("cuda:1" if torch.cuda.device_count() > 1 else "cpu")
    model = SpeechModel().to(device).eval()
    path = find_alignment(model, [3, 4, 9], torch.randn(6, 4))
    print(path)


if __name__ == "__main__":
    main()

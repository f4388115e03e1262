# source: flashinfer-ai/flashinfer#4576
# mechanism: a work buffer is kept by its size alone, and a second call of the same size on another GPU gets the first one's buffer
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn


def sequence_index(lengths, device):
    rows = torch.arange(len(lengths), device=device)
    return rows.repeat_interleave(torch.tensor(lengths, device=device))


class ChunkScan:
    """A segmented decayed scan over packed sequences."""

    def __init__(self):
        self._bounds = None
        self._size = None
        self._workspace = {}

    def workspace(self, tokens, dim, device):
        key = (tokens, dim, device)
        if key not in self._workspace:
            self._workspace[key] = torch.empty(tokens, dim, device=device)
        return self._workspace[key]

    def bounds(self, seq_idx, num_sequences):
        size = num_sequences + 1
        if self._size != size:  # ROOT
            self._bounds = torch.empty(size, dtype=torch.int64, device=seq_idx.device)
            self._size = size
        counts = torch.bincount(seq_idx, minlength=num_sequences)
        self._bounds.zero_()
        torch.cumsum(counts, dim=0, out=self._bounds[1:])  # RAISE
        return self._bounds

    def __call__(self, x, decay, seq_idx, num_sequences):
        bounds = self.bounds(seq_idx, num_sequences)
        out = self.workspace(x.shape[0], x.shape[1], x.device)
        limits = bounds.tolist()
        for start, stop in zip(limits, limits[1:]):
            state = torch.zeros(x.shape[1], device=x.device)
            for t in range(start, stop):
                state = state * decay + x[t]
                out[t] = state
        return out.clone()


class ScanMixer(nn.Module):
    def __init__(self, dim, scan):
        super().__init__()
        self.inp, self.out = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.decay = nn.Parameter(torch.full((dim,), 0.5))
        self.__dict__["scan"] = scan

    def forward(self, x, lengths):
        seq_idx = sequence_index(lengths, x.device)
        mixed = self.scan(self.inp(x), torch.sigmoid(self.decay), seq_idx, len(lengths))
        return x + self.out(mixed)


class PipelineModel(nn.Module):
    def __init__(self, vocab, dim, devices):
        super().__init__()
        scan = ChunkScan()
        self.devices = devices
        self.embed = nn.Embedding(vocab, dim).to(devices[0])
        self.mixers = nn.ModuleList([ScanMixer(dim, scan).to(d) for d in devices])  # ALSO
        self.head = nn.Linear(dim, vocab).to(devices[-1])

    def forward(self, tokens, lengths):
        x = self.embed(tokens.to(self.devices[0]))
        for device, mixer in zip(self.devices, self.mixers):
            x = mixer(x.to(device), lengths)
        return self.head(x)


@torch.inference_mode()
def score(model, sequences):
    lengths = [len(s) for s in sequences]
    tokens = torch.cat(sequences)
    logp = model(tokens, lengths).log_softmax(-1).cpu()
    picked = logp[:-1].gather(1, tokens[1:, None]).squeeze(1)
    return picked.mean().item()


def main():
    model = PipelineModel(20, 6, [torch.device("cuda:0"), torch.device("cuda:1")]).eval()
    print(score(model, [torch.randint(0, 20, (n,)) for n in (4, 3)]))


if __name__ == "__main__":
    main()

# source: speechbrain/speechbrain#992
# mechanism: audio chunks that are read from a file go into the model of a pretrained interface without being moved, while the batch entry point moves its input
# expect: raises
import os
import tempfile

import torch
from torch import nn


class SpeechCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 8, 5, padding=2)
        self.norm = nn.GroupNorm(2, 8)
        self.head = nn.Linear(8, 1)

    def forward(self, wavs):
        x = self.norm(torch.relu(self.conv(wavs.unsqueeze(1))))  # RAISE
        return torch.sigmoid(self.head(x.transpose(1, 2)))


class ChunkReader:
    """Reads a recording piece by piece, so that long files fit."""

    def __init__(self, path, chunk):
        self.data = torch.load(path)["samples"]
        self.chunk = chunk

    def __iter__(self):
        for start in range(0, self.data.numel(), self.chunk):
            piece = self.data[start:start + self.chunk]
            last = start + self.chunk >= self.data.numel()
            yield piece.unsqueeze(0), last


class Pretrained:
    def __init__(self, modules, device):
        self.device = device
        self.modules = modules.to(device).eval()


class ActivityDetector(Pretrained):
    small_chunk = 32

    def classify_batch(self, wavs):
        return self.get_prob_chunk(wavs.to(self.device))

    @torch.no_grad()
    def get_prob_chunk(self, wavs):
        return self.modules(wavs)  # ALSO

    def create_chunks(self, x):
        pad = (-x.shape[1]) % self.small_chunk
        if pad:
            x = torch.cat([x, x.new_zeros(x.shape[0], pad)], 1)
        return x.reshape(-1, self.small_chunk)

    def get_prob_file(self, path, large_chunk=128):
        probs = []
        for large, last in ChunkReader(path, large_chunk):
            small = self.create_chunks(large)  # ROOT
            p = self.get_prob_chunk(small).reshape(1, -1)  # ALSO
            probs.append(p if last else p[:, :large.shape[1]])
        return torch.cat(probs, 1)


def write_recording(folder, n=300):
    path = os.path.join(folder, "example.pt")
    torch.save({"samples": torch.randn(n), "rate": 16000}, path)
    return path


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    detector = ActivityDetector(SpeechCNN(), device)
    print("batch", detector.classify_batch(torch.randn(2, 64)).mean().item())
    with tempfile.TemporaryDirectory() as folder:
        prob = detector.get_prob_file(write_recording(folder))
    print("file", prob.shape, (prob > 0.5).float().mean().item())


if __name__ == "__main__":
    main()

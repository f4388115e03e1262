# source: kitzeslab/opensoundscape#438, kornia/kornia#224
# mechanism: the labels of a batch are made floats for the loss and stay on the host; the clips beside them are moved
# phase: training; aten::binary_cross_entropy_with_logits
# expect: raises
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SPECIES = ("wren", "robin", "owl")
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Clips(Dataset):
    def __init__(self, recordings, seconds=2):
        self.recordings = recordings
        self.seconds = seconds

    def __len__(self):
        return len(self.recordings)

    def __getitem__(self, index):
        sound, heard = self.recordings[index]
        spectrum = torch.stft(sound, 32, hop_length=16, window=torch.hann_window(32), return_complex=True).abs()
        return spectrum.log1p().unsqueeze(0), torch.tensor([name in heard for name in SPECIES])


def record(k):
    time = torch.arange(256) / 256
    return torch.sin(2 * torch.pi * (8 + 4 * k) * time) + 0.1 * torch.randn(256), {SPECIES[k % 3], SPECIES[k % 2]}


class Listener(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 4, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten())
        self.head = nn.Linear(16, len(SPECIES))

    def forward(self, clips):
        return self.head(self.body(clips))


listener = Listener().to(device)
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.AdamW(listener.parameters(), lr=1e-3)
for epoch in range(2):
    for clips, heard in DataLoader(Clips([record(k) for k in range(12)]), batch_size=4, shuffle=True):
        clips = clips.to(device)  # ALSO
        heard = heard.float()  # ROOT
        optimizer.zero_grad()
        loss = criterion(listener(clips), heard)  # RAISE
        loss.backward()
        optimizer.step()

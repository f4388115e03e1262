# source: JusperLee/Conv-TasNet#12
# mechanism: separated sources are brought to the host one by one, but the norm of the mixture by which they are rescaled stays on the GPU
# expect: raises
import torch
from torch import nn


class TasNet(nn.Module):
    def __init__(self, n_src=2, n_filters=16, kernel=8):
        super().__init__()
        self.n_src = n_src
        self.encoder = nn.Conv1d(1, n_filters, kernel, stride=kernel // 2)
        self.mask = nn.Conv1d(n_filters, n_filters * n_src, 1)
        self.decoder = nn.ConvTranspose1d(n_filters, 1, kernel, stride=kernel // 2)

    def forward(self, mix):
        w = torch.relu(self.encoder(mix.unsqueeze(1)))
        masks = torch.sigmoid(self.mask(w)).chunk(self.n_src, dim=1)
        return [self.decoder(w * m).squeeze(1) for m in masks]


class MixtureList:
    def __init__(self, n=2, length=64):
        gen = torch.Generator().manual_seed(7)
        self.items = {f"utt{i}": torch.randn(length, generator=gen) for i in range(n)}

    def __iter__(self):
        return iter(self.items.items())

    def __len__(self):
        return len(self.items)


class WaveWriter:
    def __init__(self):
        self.store = {}

    def write(self, key, samples):
        if samples.device.type != "cpu":
            raise ValueError("samples must be in host memory")
        self.store[key] = samples.clamp(-1, 1)


class Separation:
    def __init__(self, mixtures, net, gpuid):
        self.mixtures = mixtures
        self.device = torch.device(f"cuda:{gpuid[0]}" if torch.cuda.is_available() else "cpu")
        self.gpuid = tuple(gpuid)
        self.net = net.to(self.device).eval()

    def normalise(self, source, norm):
        source = source - source.mean()
        return source * norm / source.abs().max()  # RAISE # ALSO

    def separate_one(self, egs):
        mix = egs.to(self.device)
        norm = torch.linalg.vector_norm(mix, float("inf"))  # ROOT
        ests = self.net(mix.unsqueeze(0))
        spks = [s.squeeze(0).detach().cpu() for s in ests]
        return [self.normalise(s, norm) for s in spks]  # ALSO

    def inference(self, writer):
        with torch.no_grad():
            for key, egs in self.mixtures:
                for index, samples in enumerate(self.separate_one(egs)):
                    writer.write(f"spk{index + 1}/{key}", samples[:egs.shape[-1]])
        return len(self.mixtures)


def main():
    torch.manual_seed(0)
    writer = WaveWriter()
    separation = Separation(MixtureList(), TasNet(), gpuid=[0])
    count = separation.inference(writer)
    print(count, {k: round(v.abs().max().item(), 3) for k, v in writer.store.items()})


if __name__ == "__main__":
    main()

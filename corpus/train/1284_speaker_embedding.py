# source: pyannote/pyannote-audio#1217
# mechanism: a to() method reloads the embedding model for the device that the object had before the call, and records the new one only afterwards
# expect: raises
import torch
from torch import nn


class XVector(nn.Module):
    def __init__(self, n_feats=8, dim=6):
        super().__init__()
        self.frame = nn.Linear(n_feats, 16)
        self.out = nn.Linear(32, dim)

    def forward(self, wavs):
        x = torch.relu(self.frame(wavs.unfold(1, 8, 8)))  # RAISE
        stats = torch.cat([x.mean(1), x.std(1)], -1)
        return self.out(stats)


class EncoderClassifier:
    @classmethod
    def from_hparams(cls, source, run_opts):
        torch.manual_seed(len(source))
        self = cls()
        self.device = torch.device(run_opts["device"])
        self.mods = XVector().to(self.device).eval()
        return self

    @torch.no_grad()
    def encode_batch(self, wavs):
        return self.mods(wavs)


class PretrainedSpeakerEmbedding:
    def __init__(self, embedding, device=None):
        self.embedding = embedding
        self.device = device or torch.device("cpu")
        self.classifier_ = EncoderClassifier.from_hparams(embedding, run_opts={"device": self.device})

    def to(self, device):
        self.classifier_ = EncoderClassifier.from_hparams(  # ALSO
            self.embedding,
            run_opts={"device": self.device},  # ROOT
        )
        self.device = device  # ALSO
        return self

    def __call__(self, waveforms):
        return self.classifier_.encode_batch(waveforms.to(self.device)).cpu()


class Segmentation:
    def __init__(self):
        self.device = torch.device("cpu")
        self.model = nn.Conv1d(1, 2, 8, stride=8)

    def to(self, device):
        self.model.to(device)
        self.device = device
        return self

    @torch.no_grad()
    def __call__(self, waveforms):
        return torch.sigmoid(self.model(waveforms.unsqueeze(1).to(self.device))).cpu()


class Pipeline:
    def __init__(self, **parts):
        self.parts = parts

    def to(self, device):
        for part in self.parts.values():
            part.to(device)
        return self

    def apply(self, waveform, window=64):
        chunks = waveform.unfold(0, window, window)
        activity = self.parts["segmentation"](chunks).mean(-1)
        embeddings = self.parts["embedding"](chunks)
        return self.cluster(embeddings, activity)

    def cluster(self, embeddings, activity, threshold=0.7):
        unit = nn.functional.normalize(embeddings, dim=1)
        labels, centers = [], []
        for vector in unit:
            sims = [float(vector @ c) for c in centers]
            if not sims or max(sims) < threshold:
                centers.append(vector)
                sims.append(1.0)
            labels.append(max(range(len(sims)), key=sims.__getitem__))
        return labels, activity.max(dim=1).values.tolist()


def main():
    pipeline = Pipeline(segmentation=Segmentation(), embedding=PretrainedSpeakerEmbedding("ecapa"))
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    pipeline.to(device)
    torch.manual_seed(0)
    print(pipeline.apply(torch.randn(256)))


if __name__ == "__main__":
    main()

# source: QuentinFuxa/WhisperLiveKit#206
# mechanism: a streaming step moves the feature chunk to the model but makes the chunk's length tensor on the CPU, and the encoder builds its mask from both
# expect: raises
import torch
from torch import nn


class Subsampling(nn.Module):
    def __init__(self, n_feats, dim, factor=2):
        super().__init__()
        self.factor = factor
        self.conv = nn.Conv1d(n_feats, dim, factor, stride=factor)

    def forward(self, feats, lengths):
        x = self.conv(feats.transpose(1, 2)).transpose(1, 2)
        lengths = torch.div(lengths, self.factor, rounding_mode="floor")  # ALSO
        steps = torch.arange(x.shape[1], device=x.device)
        mask = steps.unsqueeze(0) < lengths.unsqueeze(1)  # RAISE # ALSO
        return x * mask.unsqueeze(-1), lengths


class StreamingState:
    def __init__(self, batch, dim, n_spk, device):
        self.cache = torch.zeros(batch, 0, dim, device=device)
        self.preds = torch.zeros(batch, 0, n_spk, device=device)
        self.max_cache = 6

    def push(self, embs, preds):
        self.cache = torch.cat([self.cache, embs], 1)[:, -self.max_cache:]
        self.preds = torch.cat([self.preds, preds], 1)


class DiarizationModel(nn.Module):
    def __init__(self, n_feats=6, dim=12, n_spk=3):
        super().__init__()
        self.dim, self.n_spk = dim, n_spk
        self.pre_encode = Subsampling(n_feats, dim)
        self.encoder = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, n_spk)

    @property
    def device(self):
        return self.head.weight.device

    def init_streaming_state(self, batch):
        return StreamingState(batch, self.dim, self.n_spk, self.device)

    def forward_streaming_step(self, feats, lengths, state):
        embs, _ = self.pre_encode(feats, lengths)  # ALSO
        context = torch.cat([state.cache, embs], 1)
        out = torch.sigmoid(self.head(self.encoder(context)[0]))
        state.push(embs, out[:, -embs.shape[1]:])
        return state


class AudioToFeatures:
    def __init__(self, frame=8, n_feats=6):
        self.frame, self.n_feats = frame, n_feats

    def __call__(self, pcm):
        frames = pcm.unfold(0, self.frame, self.frame)
        return torch.fft.rfft(frames).abs()[:, :self.n_feats - 1], frames.pow(2).mean(1, keepdim=True)


class OnlineDiarizer:
    def __init__(self, model, chunk=64):
        self.model = model.eval()
        self.features = AudioToFeatures()
        self.state = model.init_streaming_state(1)
        self.pending, self.chunk = torch.zeros(0), chunk

    def insert_audio(self, pcm):
        self.pending = torch.cat([self.pending, pcm])

    @torch.no_grad()
    def diarize(self):
        while len(self.pending) >= self.chunk:
            pcm, self.pending = self.pending[:self.chunk], self.pending[self.chunk:]
            feats = torch.cat(self.features(pcm), 1).unsqueeze(0).to(self.model.device)
            lengths = torch.tensor([feats.shape[1]])  # ROOT
            self.state = self.model.forward_streaming_step(feats, lengths, self.state)  # ALSO
        return self.state.preds.argmax(-1).squeeze(0).cpu().tolist()


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    diarizer = OnlineDiarizer(DiarizationModel().to(device))
    for _ in range(3):
        diarizer.insert_audio(torch.randn(50))
        print(diarizer.diarize())


if __name__ == "__main__":
    main()

# source: speechbrain/speechbrain#2015
# mechanism: the padding chunk of a boundary detector is made on a hard-coded CPU device and concatenated with probabilities of the configured device
# expect: raises
import torch
from torch import nn


class FrameScorer(nn.Module):
    def __init__(self, frame=16, hidden=12):
        super().__init__()
        self.frame = frame
        self.rnn = nn.GRU(frame, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, wavs):
        frames = wavs.unfold(1, self.frame, self.frame)
        h, _ = self.rnn(frames)
        return torch.sigmoid(self.out(h))


class VAD:
    def __init__(self, model, run_opts=None):
        self.device = torch.device((run_opts or {}).get("device", "cpu"))
        self.model = model.to(self.device).eval()

    @classmethod
    def from_hparams(cls, hparams, run_opts=None):
        torch.manual_seed(hparams["seed"])
        return cls(FrameScorer(hparams["frame"], hparams["hidden"]), run_opts)

    @torch.no_grad()
    def get_speech_prob(self, wav, large_chunk=128):
        probs = []
        for chunk in wav.split(large_chunk, dim=1):
            chunk = chunk.to(self.device)
            probs.append(self.model(chunk))
        return torch.cat(probs, dim=1)

    def apply_threshold(self, probs, on=0.5):
        return (probs > on).int()

    def get_boundaries(self, decisions):
        shifted = torch.roll(decisions, dims=1, shifts=1)
        shifted[:, 0, :] = 0
        prob_th = decisions + shifted
        prob_th[:, 0, :] = (prob_th[:, 0, :] >= 1).int()
        starts = (prob_th[0, :, 0] == 1).nonzero(as_tuple=True)[0]
        if len(starts) % 2:
            starts = torch.cat([starts, self._last_index(decisions)])  # RAISE # ALSO
        return starts.reshape(-1, 2)

    def _last_index(self, decisions):
        last = decisions.shape[1] - 1
        return torch.tensor([last], dtype=torch.long, device="cpu")  # ROOT

    def upsample_boundaries(self, boundaries, length):
        track = torch.zeros(1, length, device=boundaries.device)
        for begin, end in boundaries.tolist():
            track[:, begin:end + 1] = 1
        return track

    def double_check(self, boundaries, wav, threshold=0.1):
        kept = []
        for begin, end in boundaries.tolist():
            segment = wav[:, begin * self.model.frame:(end + 1) * self.model.frame].to(self.device)
            if self.model(segment).mean() > threshold:
                kept.append((begin, end))
        return kept


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    vad = VAD.from_hparams({"seed": 1, "frame": 16, "hidden": 12}, {"device": device})
    wav = torch.cat([torch.zeros(1, 160), torch.randn(1, 240)], dim=1)
    probs = vad.get_speech_prob(wav)
    decisions = vad.apply_threshold(probs - probs[:, :5].mean() + 0.5, on=0.4)
    decisions[:, -1] = 1
    boundaries = vad.get_boundaries(decisions)
    track = vad.upsample_boundaries(boundaries, decisions.shape[1])
    print(boundaries.tolist(), track.sum().item(), vad.double_check(boundaries, wav))


if __name__ == "__main__":
    main()

# source: facebookresearch/fairseq#4766
# mechanism: the hub interface moves the acoustic model to the GPU, but the generator keeps the vocoder where it was built
# expect: raises
import torch
from torch import nn


class FastSpeech(nn.Module):
    def __init__(self, vocab, n_mels=6, dim=12):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.speakers = nn.Embedding(4, dim)
        self.duration = nn.Linear(dim, 1)
        self.out = nn.Linear(dim, n_mels)

    def forward(self, tokens, speaker):
        x = self.embed(tokens) + self.speakers(speaker)
        repeats = (torch.sigmoid(self.duration(x)).squeeze(-1) * 3).ceil().long().clamp(min=1)
        x = x[0].repeat_interleave(repeats[0], dim=0).unsqueeze(0)
        return self.out(x)


class HiFiGAN(nn.Module):
    def __init__(self, n_mels=6, hop=4):
        super().__init__()
        self.conv_pre = nn.Conv1d(n_mels, 8, 3, padding=1)
        self.up = nn.ConvTranspose1d(8, 1, hop, stride=hop)

    def forward(self, mel):
        x = self.conv_pre(mel.transpose(1, 2))  # RAISE
        return torch.tanh(self.up(torch.relu(x))).reshape(-1)


class SpeechGenerator:
    def __init__(self, model, vocoder, stats):
        self.model, self.vocoder = model, vocoder  # ALSO
        self.mean, self.std = stats

    @torch.no_grad()
    def generate(self, sample):
        self.model.eval()
        mel = self.model(sample["tokens"], sample["speaker"])
        mel = mel * self.std + self.mean
        return self.get_waveform(mel)

    def get_waveform(self, mel):
        return self.vocoder(mel)


class SpeechTask:
    def __init__(self, cfg):
        self.cfg = cfg
        self.symbols = {c: i for i, c in enumerate(" abcdefghijklmnopqrstuvwxyz,.")}

    def build_model(self):
        return FastSpeech(len(self.symbols))

    def build_generator(self, model):
        stats = (self.cfg["mel_mean"], self.cfg["mel_std"])
        vocoder = HiFiGAN().eval()  # ROOT
        return SpeechGenerator(model, vocoder, stats)


class HubInterface:
    def __init__(self, task, device):
        self.task, self.device = task, device
        self.model = task.build_model().to(device)
        self.generator = task.build_generator(self.model)  # ALSO

    def get_model_input(self, text, speaker=0):
        tokens = [self.task.symbols[c] for c in text.lower() if c in self.task.symbols]
        return {"tokens": torch.tensor([tokens]), "speaker": torch.tensor([speaker])}

    def get_prediction(self, text):
        sample = {k: v.to(self.device) for k, v in self.get_model_input(text).items()}
        wav = self.generator.generate(sample)
        return wav.cpu(), 16000


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    hub = HubInterface(SpeechTask({"mel_mean": 0.1, "mel_std": 1.5}), device)
    wav, rate = hub.get_prediction("Hello, this is a test run.")
    print(wav.shape, rate)


if __name__ == "__main__":
    main()

# source: index-tts/index-tts#147
# mechanism: the text mask of a generator is moved with cuda(), to the first GPU, where the command line chose the second
# expect: raises
# needs: 2 GPUs
import argparse

import torch
from torch import nn


class TextTokenizer:
    def __init__(self, alphabet="abcdefghijklmnopqrstuvwxyz '"):
        self.index = {c: i + 1 for i, c in enumerate(alphabet)}

    def __len__(self):
        return len(self.index) + 1

    def encode(self, text):
        return [self.index[c] for c in text.lower() if c in self.index]


class Conditioner(nn.Module):
    def __init__(self, mels, dim):
        super().__init__()
        self.proj = nn.Linear(mels, dim)

    def forward(self, mel):
        return self.proj(mel).mean(1, keepdim=True)


class UnifiedVoice(nn.Module):
    def __init__(self, vocab, codes=16, mels=6, dim=8):
        super().__init__()
        self.text = nn.Embedding(vocab, dim)
        self.code = nn.Embedding(codes + 1, dim)
        self.conditioner = Conditioner(mels, dim)
        self.block = nn.TransformerEncoderLayer(dim, 2, 2 * dim, batch_first=True)
        self.head = nn.Linear(dim, codes)

    def forward(self, cond, text, mask, codes):
        prefix = torch.cat([self.conditioner(cond), self.text(text) * mask.unsqueeze(-1)], dim=1)  # RAISE
        x = torch.cat([prefix, self.code(codes)], dim=1)
        return self.head(self.block(x)[:, -1])


class Vocoder(nn.Module):
    def __init__(self, codes=16, hop=4):
        super().__init__()
        self.table = nn.Embedding(codes + 1, hop)

    def forward(self, codes):
        return torch.tanh(self.table(codes)).flatten(1)


class IndexTTS:
    def __init__(self, device=None):
        if device is None:
            device = "cuda:0" if torch.cuda.is_available() else "cpu"
        self.device = torch.device(device)
        self.tokenizer = TextTokenizer()
        self.gpt = UnifiedVoice(len(self.tokenizer)).to(self.device).eval()
        self.vocoder = Vocoder().to(self.device).eval()

    def batch(self, sentences):
        rows = [self.tokenizer.encode(s) for s in sentences]
        width = max(len(r) for r in rows)
        text = torch.tensor([r + [0] * (width - len(r)) for r in rows], device=self.device)
        mask = torch.tensor([[1.0] * len(r) + [0.0] * (width - len(r)) for r in rows])
        if self.device.type == "cuda":
            mask = mask.cuda()  # ROOT
        return text, mask  # ALSO

    @torch.no_grad()
    def infer(self, prompt_mel, sentences, steps=4):
        text, mask = self.batch(sentences)
        cond = prompt_mel.to(self.device).expand(len(sentences), -1, -1)
        codes = torch.full((len(sentences), 1), 16, device=self.device)
        for _ in range(steps):
            logits = self.gpt(cond, text, mask, codes)
            codes = torch.cat([codes, torch.multinomial(logits.softmax(-1), 1)], dim=1)
        return self.vocoder(codes[:, 1:]).cpu()


def main(argv):
    parser = argparse.ArgumentParser()
    parser.add_argument("text")
    parser.add_argument("-d", "--device", default=None)
    args = parser.parse_args(argv)
    tts = IndexTTS(device=args.device)
    wave = tts.infer(torch.randn(1, 5, 6), args.text.split("."))
    print(wave.shape)


if __name__ == "__main__":
    main(["hello there. how are you", "-d", "cuda:1"])

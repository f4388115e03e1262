# source: huggingface/transformers PR#31416
# mechanism: the processors got a device argument with the default "cpu", and one model with its own generate method does not hand it on.
# expect: raises
import torch
from torch import nn


class SuppressTokensProcessor:
    def __init__(self, suppress_tokens, vocab_size, device="cpu"):
        blocked = torch.zeros(vocab_size, dtype=torch.bool, device=device)
        blocked[list(suppress_tokens)] = True
        self.blocked = blocked

    def __call__(self, input_ids, scores):
        return torch.where(self.blocked, torch.full_like(scores, -1e4), scores)  # RAISE # ALSO


class MinLengthProcessor:
    def __init__(self, min_length, eos_token, device="cpu"):
        self.min_length = min_length
        self.eos = torch.tensor([eos_token], device=device)

    def __call__(self, input_ids, scores):
        if input_ids.shape[1] < self.min_length:
            scores = scores.index_fill(1, self.eos, -1e4)
        return scores


class StageDecoder(nn.Module):
    def __init__(self, vocab_size, dim=12):
        super().__init__()
        self.vocab_size = vocab_size
        self.embed = nn.Embedding(vocab_size, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, vocab_size)

    @property
    def device(self):
        return self.head.weight.device

    def forward(self, input_ids):
        hidden, _ = self.rnn(self.embed(input_ids))
        return self.head(hidden[:, -1])

    @torch.no_grad()
    def generate(self, input_ids, processors, steps):
        for _ in range(steps):
            scores = self(input_ids)
            for processor in processors:
                scores = processor(input_ids, scores)
            input_ids = torch.cat([input_ids, scores.argmax(-1, keepdim=True)], dim=1)
        return input_ids


class SemanticStage(StageDecoder):
    def speak(self, text_ids, eos_token=1, steps=3):
        processors = [MinLengthProcessor(5, eos_token, device=self.device)]
        return self.generate(text_ids.to(self.device), processors, steps)


class CoarseStage(StageDecoder):
    def speak(self, semantic_ids, codebook=8, steps=3):
        rest = range(codebook, self.vocab_size)
        processors = [SuppressTokensProcessor(rest, self.vocab_size)]  # ROOT
        return self.generate(semantic_ids.to(self.device), processors, steps)


class SpeechModel(nn.Module):
    def __init__(self, vocab_size=16):
        super().__init__()
        self.semantic = SemanticStage(vocab_size)
        self.coarse = CoarseStage(vocab_size)

    def forward(self, text_ids):
        semantic = self.semantic.speak(text_ids)
        return self.coarse.speak(semantic)


def main():
    torch.manual_seed(1)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    model = SpeechModel().to(device).eval()
    text_ids = torch.randint(2, 16, (2, 4))
    codes = model(text_ids)
    print(codes.shape, codes.cpu().float().mean().item())


if __name__ == "__main__":
    main()

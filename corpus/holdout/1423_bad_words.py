# source: huggingface/transformers#23900
# mechanism: with a GPU as default device a mask of banned words is built from indices of a legacy constructor, which stays on the CPU, and values on the GPU
# expect: raises
from dataclasses import dataclass, field
from typing import List

import torch
from torch import nn


@dataclass
class GenerationConfig:
    max_new_tokens: int = 4
    temperature: float = 1.0
    eos_token_id: int = 1
    bad_words_ids: List[List[int]] = field(default_factory=list)


class TemperatureWarper:
    def __init__(self, temperature):
        self.temperature = temperature

    def __call__(self, input_ids, scores):
        return scores / self.temperature


class NoBadWordsProcessor:
    def __init__(self, bad_words_ids, eos_token_id):
        self.single = [w[0] for w in bad_words_ids if len(w) == 1 and w[0] != eos_token_id]
        self.longer = [w for w in bad_words_ids if len(w) > 1]

    def banned_tokens(self, row):
        banned = list(self.single)
        for word in self.longer:
            if row[-len(word) + 1 :] == word[:-1]:
                banned.append(word[-1])
        return banned

    def __call__(self, input_ids, scores):
        pairs = []
        for i, row in enumerate(input_ids.tolist()):
            pairs += [[i, token] for token in self.banned_tokens(row)]
        if not pairs:
            return scores
        indices = torch.LongTensor(pairs)  # ROOT
        values = torch.ones(len(pairs), device=scores.device)
        flat = indices[:, 0] * scores.shape[1] + indices[:, 1]  # ALSO
        mask = torch.zeros(scores.numel(), device=scores.device).scatter(0, flat, values)  # RAISE # ALSO
        return scores.masked_fill(mask.view_as(scores).bool(), -float("inf"))


class TinyLM(nn.Module):
    def __init__(self, vocab=16, dim=8):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, vocab)

    def forward(self, ids):
        return self.head(self.rnn(self.embed(ids))[0])[:, -1]


@torch.no_grad()
def generate(model, input_ids, config):
    processors = [TemperatureWarper(config.temperature)]
    if config.bad_words_ids:
        processors.append(NoBadWordsProcessor(config.bad_words_ids, config.eos_token_id))
    for _ in range(config.max_new_tokens):
        scores = model(input_ids)
        for processor in processors:
            scores = processor(input_ids, scores)
        next_ids = torch.multinomial(scores.softmax(-1), 1)
        input_ids = torch.cat([input_ids, next_ids], dim=1)
    return input_ids


def main():
    if torch.cuda.is_available():
        torch.set_default_device("cuda")
    model = TinyLM().eval()
    config = GenerationConfig(bad_words_ids=[[3], [4, 5]])
    print(generate(model, torch.tensor([[2, 6], [7, 4]]), config).tolist())


if __name__ == "__main__":
    main()

# source: huggingface/transformers PR#38558
# mechanism: a logits processor keeps a bias tensor that it made in its constructor, and adds it to the scores that the model makes on the GPU.
# expect: raises
from dataclasses import dataclass, field

import torch
from torch import nn


@dataclass
class GenerationSettings:
    max_new_tokens: int = 4
    temperature: float = 0.8
    token_bias: dict = field(default_factory=dict)


class TinyCausalLM(nn.Module):
    def __init__(self, vocab_size=32, dim=16, max_len=24):
        super().__init__()
        self.vocab_size = vocab_size
        self.embed = nn.Embedding(vocab_size, dim)
        self.pos = nn.Embedding(max_len, dim)
        self.mix = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, vocab_size, bias=False)

    def forward(self, input_ids):
        positions = torch.arange(input_ids.shape[1], device=input_ids.device)
        hidden, _ = self.mix(self.embed(input_ids) + self.pos(positions))
        return self.head(hidden)


class TemperatureWarper:
    def __init__(self, temperature):
        self.temperature = temperature

    def __call__(self, input_ids, scores):
        return scores / self.temperature


class TokenBiasProcessor:
    def __init__(self, token_bias, vocab_size):
        self.vocab_size = vocab_size
        self.bias = torch.zeros(vocab_size)
        for token, value in token_bias.items():
            self.bias[token] = value

    def __call__(self, input_ids, scores):
        if scores.shape[-1] != self.vocab_size:
            raise ValueError("vocabulary of the model and of the bias differ")
        return scores + self.bias  # RAISE # ROOT


class ProcessorList(list):
    def __call__(self, input_ids, scores):
        for processor in self:
            scores = processor(input_ids, scores)
        return scores


def build_processors(settings, vocab_size):
    processors = ProcessorList()
    if settings.token_bias:
        processors.append(TokenBiasProcessor(settings.token_bias, vocab_size))
    if settings.temperature != 1.0:
        processors.append(TemperatureWarper(settings.temperature))
    return processors


@torch.no_grad()
def generate(model, input_ids, settings):
    processors = build_processors(settings, model.vocab_size)
    for _ in range(settings.max_new_tokens):
        scores = model(input_ids)[:, -1].float()
        scores = processors(input_ids, scores)
        next_tokens = scores.argmax(dim=-1, keepdim=True)
        input_ids = torch.cat([input_ids, next_tokens], dim=1)
    return input_ids


def main():
    torch.manual_seed(0)
    device = torch.device("cuda:0")
    model = TinyCausalLM().to(device).eval()
    prompt = torch.tensor([[3, 7, 2], [5, 5, 1]]).to(device)
    settings = GenerationSettings(token_bias={4: -5.0, 9: 2.5})
    tokens = generate(model, prompt, settings)
    print(tokens.cpu().tolist())


if __name__ == "__main__":
    main()

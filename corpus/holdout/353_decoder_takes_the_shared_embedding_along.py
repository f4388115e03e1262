# source: a variation of https://github.com/huggingface/accelerate/issues/993
# mechanism: encoder and decoder share the weight of their embeddings; the decoder goes to the second GPU after the encoder went to the first
# phase: forward of the encoder; aten::embedding
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.mix = nn.Linear(width, width)

    def forward(self, tokens):
        return self.mix(self.embed(tokens)).relu().mean(1, keepdim=True)  # RAISE


class Decoder(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.mix, self.out = nn.Linear(width, width), nn.Linear(width, words)

    def forward(self, tokens, context):
        return self.out((self.mix(self.embed(tokens)) + context).tanh())


class Translator(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.encoder, self.decoder = Encoder(words, width), Decoder(words, width)
        self.decoder.embed.weight = self.encoder.embed.weight

    def parallelize(self, first, second):
        self.first, self.second = first, second
        self.encoder.to(first)
        self.decoder.to(second)  # ROOT
        return self

    def forward(self, source, target):
        context = self.encoder(source.to(self.first))
        return self.decoder(target.to(self.second), context.to(self.second))


model = Translator(words=11, width=6).parallelize("cuda:0", "cuda:1")
optimizer = torch.optim.AdamW(model.parameters())
source, target = torch.randint(0, 11, (3, 5)), torch.randint(0, 11, (3, 6))
logits = model(source, target[:, :-1])
nn.functional.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten().to(logits.device)).backward()
optimizer.step()

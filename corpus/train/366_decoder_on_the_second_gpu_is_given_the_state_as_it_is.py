# source: huggingface/transformers#22561, pytorch/pytorch#79885
# mechanism: encoder and decoder lie on one GPU each; the model hands the encoder's output on without moving it
# phase: forward; aten::linear
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body, self.norm = nn.Linear(width, width), nn.LayerNorm(width)

    def forward(self, x):
        return {"states": self.norm(self.body(x)), "mask": x[..., 0] > 0}


class Decoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.queries = nn.Parameter(torch.randn(2, width))
        self.keys = nn.Linear(width, width)

    def attend(self, states, mask):
        scores = self.queries @ self.keys(states).transpose(-1, -2)  # RAISE
        return scores.masked_fill(~mask[:, None], -1e9).softmax(-1) @ states

    def forward(self, encoded):
        return self.attend(encoded["states"], encoded["mask"])  # ALSO


class Model(nn.Module):
    def __init__(self, width, devices):
        super().__init__()
        self.first = devices[0]
        self.encoder = Encoder(width).to(devices[0])
        self.decoder = Decoder(width).to(devices[1])

    def forward(self, x):
        encoded = self.encoder(x.to(self.first))  # ALSO
        return self.decoder(encoded)  # ROOT


Model(4, ["cuda:0", "cuda:1"])(torch.randn(3, 5, 4))

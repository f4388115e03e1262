"""Heads in a plain list, behind a transformers backbone."""
import torch
from torch import nn
from transformers import GPT2Config, GPT2Model


class Classifier(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.backbone = GPT2Model(GPT2Config(n_embd=16, n_layer=2, n_head=2, vocab_size=50))
        self.heads = [nn.Linear(16, size) for size in sizes]  # ROOT

    def forward(self, ids):
        hidden = self.backbone(ids).last_hidden_state[:, -1]
        return [head(hidden) for head in self.heads]


model = Classifier([2, 5]).to("cuda:0")
model(torch.randint(0, 50, (2, 7), device="cuda:0"))

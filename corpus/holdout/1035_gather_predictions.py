# source: NVIDIA-BioNeMo/bionemo-recipes#898
# mechanism: the collator joins the prediction batches of all replicas although each replica left its batch on its own GPU
# needs: 2 GPUs
# expect: raises
import copy
from typing import Dict, List, Optional

import torch
from torch import nn


class Embedder(nn.Module):
    def __init__(self, vocab=25, dim=10):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim, padding_idx=0)
        self.mix = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, vocab)

    def forward(self, tokens):
        hidden, _ = self.mix(self.embed(tokens))
        return {"token_logits": self.head(hidden), "embeddings": hidden.mean(1), "count": (tokens > 0).sum(1)}


def pad_to(tensors: List[torch.Tensor], dim: int) -> List[torch.Tensor]:
    longest = max(t.shape[dim] for t in tensors)
    padded = []
    for t in tensors:
        shape = list(t.shape)
        shape[dim] = longest - shape[dim]
        padded.append(torch.cat([t, t.new_zeros(shape)], dim=dim))
    return padded


def batch_collator(batches, seq_keys=("token_logits",)):
    first = batches[0]
    if torch.is_tensor(first):
        return torch.cat(batches, dim=0)  # RAISE # ROOT
    if isinstance(first, dict):
        out = {}
        for key in first:
            values = [b[key] for b in batches]  # ALSO
            if key in seq_keys:
                values = pad_to(values, dim=1)
            out[key] = batch_collator(values)  # ALSO
        return out
    return [v for b in batches for v in b]


class Replica:
    def __init__(self, model, device):
        self.device = torch.device(device)
        self.model = copy.deepcopy(model).to(self.device).eval()

    @torch.no_grad()
    def predict(self, tokens):
        return self.model(tokens.to(self.device))  # ALSO


class PredictionLoop:
    def __init__(self, model, devices):
        self.replicas = [Replica(model, d) for d in devices]
        self.outputs: List[Dict[str, torch.Tensor]] = []

    def run(self, batches):
        for index, tokens in enumerate(batches):
            replica = self.replicas[index % len(self.replicas)]
            self.outputs.append(replica.predict(tokens))  # ALSO

    def collect(self) -> Optional[Dict[str, torch.Tensor]]:
        return batch_collator(self.outputs) if self.outputs else None  # ALSO


def encode(sequences, alphabet="ACDEFGHIKLMNPQRSTVWY"):
    width = max(map(len, sequences))
    return torch.tensor([[alphabet.index(r) + 1 for r in s] + [0] * (width - len(s)) for s in sequences])


def main():
    torch.manual_seed(0)
    loop = PredictionLoop(Embedder(), ["cuda:0", "cuda:1"])
    loop.run([encode(["ACDK", "GH"]), encode(["MNPQRS", "TV"]), encode(["AAA"])])
    result = loop.collect()
    print({k: tuple(v.shape) for k, v in result.items()})


if __name__ == "__main__":
    main()

# source: huggingface/transformers#27948 (pull request, Hot-fix-mixstral-loss)
# mechanism: [collected over layers] each expert layer returns its router's logits, the model's output keeps them as a tuple, the balancing loss joins them; layers are on two GPUs
# phase: loss; failing op: aten::cat (cuda:0 vs cuda:1)
# expect: raises
# needs: 2 GPUs
from dataclasses import dataclass
import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class SparseOutput:
    logits: torch.Tensor
    loss: torch.Tensor = None
    router_logits: tuple = ()


def balance_penalty(router_logits, experts, chosen=2):
    joined = torch.cat(router_logits, dim=0)  # ROOT # RAISE
    weights = joined.softmax(-1)
    picked = F.one_hot(weights.topk(chosen, dim=-1).indices, experts).float()
    return experts * (picked.mean(0) * weights.mean(0)).sum()


class ExpertLayer(nn.Module):
    def __init__(self, width, experts):
        super().__init__()
        self.router = nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList(nn.Linear(width, width) for _ in range(experts))

    def forward(self, x):
        flat = x.flatten(0, -2)
        scores = self.router(flat)
        out = sum(scores.softmax(-1)[:, i:i + 1] * expert(flat) for i, expert in enumerate(self.experts))
        return x + out.view_as(x), scores


class SparseModel(nn.Module):
    def __init__(self, gpus, vocab=16, width=8, experts=4):
        super().__init__()
        self.count = experts
        self.embed = nn.Embedding(vocab, width).to(gpus[0])
        self.layers = nn.ModuleList(ExpertLayer(width, experts).to(g) for g in gpus)
        self.head = nn.Linear(width, vocab).to(gpus[-1])

    def forward(self, ids, labels=None):
        x, routed = self.embed(ids), ()
        for layer in self.layers:
            x, scores = layer(x.to(layer.router.weight.device))
            routed += (scores,)  # ALSO
        out = SparseOutput(self.head(x), router_logits=routed)
        if labels is not None:
            labels = labels.to(out.logits.device)
            out.loss = F.cross_entropy(out.logits.flatten(0, 1), labels.flatten())
            out.loss = out.loss + 0.02 * balance_penalty(out.router_logits, self.count).to(out.loss.device)  # ALSO
        return out


model = SparseModel(["cuda:0", "cuda:0", "cuda:1", "cuda:1"])
ids = torch.randint(0, 16, (2, 6), device="cuda:0")
model(ids, labels=ids).loss.backward()

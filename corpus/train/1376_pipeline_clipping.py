# source: NVIDIA-NeMo/Automodel#793
# mechanism: the gradient norms of pipeline stages on two GPUs are stacked to compute the total norm without being brought to one device
# expect: raises
# needs: 2 GPUs
from collections import OrderedDict
from typing import Iterable, List

import torch
from torch import nn


def group_by_stage(stages: Iterable[nn.Module]) -> "OrderedDict[int, List[nn.Parameter]]":
    groups = OrderedDict()
    for i, stage in enumerate(stages):
        groups[i] = [p for p in stage.parameters() if p.requires_grad]
    return groups


def local_norm(params: List[nn.Parameter], norm_type: float) -> torch.Tensor:
    norms = [torch.linalg.vector_norm(p.grad.detach(), norm_type) for p in params if p.grad is not None]
    return torch.linalg.vector_norm(torch.stack(norms), norm_type)


def combine_norms(norms: List[torch.Tensor], norm_type: float) -> torch.Tensor:
    if norm_type == float("inf"):
        return max(norms, key=lambda n: n.item())
    return torch.stack([n ** norm_type for n in norms]).sum() ** (1.0 / norm_type)  # RAISE # ROOT


def clip_stage_gradients(stages, max_norm: float, norm_type: float = 2.0) -> torch.Tensor:
    groups = group_by_stage(stages)
    norms = [local_norm(params, norm_type) for params in groups.values()]  # ALSO
    total = combine_norms(norms, norm_type)
    coef = (max_norm / (total + 1e-6)).clamp(max=1.0)
    for params in groups.values():
        for p in params:
            if p.grad is not None:
                p.grad.mul_(coef.to(p.grad.device))
    return total


class Stage(nn.Module):
    def __init__(self, module: nn.Module, device: torch.device):
        super().__init__()
        self.device = device
        self.module = module.to(device)

    def forward(self, x):
        return self.module(x.to(self.device))


class PipelineModel(nn.Module):
    def __init__(self, vocab: int, dim: int, devices: List[torch.device]):
        super().__init__()
        first = nn.Sequential(nn.Embedding(vocab, dim), nn.Linear(dim, dim), nn.GELU())
        last = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, vocab))
        self.stages = nn.ModuleList([Stage(first, devices[0]), Stage(last, devices[-1])])

    def forward(self, tokens):
        for stage in self.stages:
            tokens = stage(tokens)
        return tokens


class TrainRecipe:
    def __init__(self, model: PipelineModel, max_grad_norm: float):
        self.model = model
        self.max_grad_norm = max_grad_norm
        self.optimizers = [torch.optim.AdamW(s.parameters(), lr=1e-2) for s in model.stages]

    def train_step(self, tokens: torch.Tensor, labels: torch.Tensor):
        logits = self.model(tokens)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten().to(logits.device))
        loss.backward()
        grad_norm = clip_stage_gradients(self.model.stages, self.max_grad_norm)
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad()
        return loss.item(), grad_norm.item()


def main():
    torch.manual_seed(0)
    devices = [torch.device("cuda", i) for i in range(2)]
    recipe = TrainRecipe(PipelineModel(20, 8, devices), max_grad_norm=1.0)
    for _ in range(2):
        tokens = torch.randint(0, 20, (3, 7))
        loss, norm = recipe.train_step(tokens[:, :-1], tokens[:, 1:])
        print("loss %.3f norm %.3f" % (loss, norm))


if __name__ == "__main__":
    main()

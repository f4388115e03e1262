# source: deepspeedai/DeepSpeed#5504
# mechanism: with an offloaded optimizer the total gradient norm is computed on the accelerator while the flat gradients that it scales live on the host
# expect: raises
from dataclasses import dataclass, field

import torch
from torch import nn


@dataclass
class ZeroConfig:
    offload_device: str = "cpu"
    sub_group_size: int = 120
    clip_grad: float = 0.5
    loss_scale: float = 128.0
    lr: float = 0.05


@dataclass
class SubGroup:
    params: list = field(default_factory=list)
    flat: torch.Tensor = None

    def numel(self):
        return sum(p.numel() for p in self.params)


def partition(params, limit):
    groups = [SubGroup()]
    for p in params:
        if groups[-1].params and groups[-1].numel() + p.numel() > limit:
            groups.append(SubGroup())
        groups[-1].params.append(p)
    return groups


class ShardedOptimizer:
    def __init__(self, module, config, accelerator):
        self.config = config
        self.device = torch.device(config.offload_device)
        self.accelerator = accelerator
        self.groups = partition(list(module.parameters()), config.sub_group_size)
        self.norm_for_param_grads = {}
        for group in self.groups:
            flat = torch.cat([p.detach().reshape(-1) for p in group.params]).to(self.device)
            group.flat = nn.Parameter(flat)
        self.inner = torch.optim.SGD([g.flat for g in self.groups], lr=config.lr, momentum=0.9)

    def reduce(self):
        for group in self.groups:
            for p in group.params:
                self.norm_for_param_grads[id(p)] = p.grad.norm(2)  # ALSO
            grads = torch.cat([p.grad.reshape(-1) for p in group.params])
            group.flat.grad = grads.to(self.device)
            for p in group.params:
                p.grad = None

    def complete_grad_norm(self, params):
        norms = torch.stack([self.norm_for_param_grads[id(p)] for p in params])  # ALSO
        total = norms.pow(2).sum().sqrt()  # ALSO
        return total  # ROOT

    def norm_groups(self):
        return [self.complete_grad_norm(g.params) for g in self.groups]  # ALSO

    def unscale_and_clip(self, group, total_norm):
        scale = self.config.loss_scale
        clip = ((total_norm / scale) + 1e-6) / self.config.clip_grad  # ALSO
        combined = torch.clamp(clip, min=1.0) * scale  # ALSO
        group.flat.grad.mul_(1.0 / combined)  # RAISE # ALSO

    def step(self):
        self.reduce()
        total_norm = torch.linalg.norm(torch.stack(self.norm_groups()))  # ALSO
        for group in self.groups:
            self.unscale_and_clip(group, total_norm)  # ALSO
        self.inner.step()
        for group in self.groups:
            pieces = group.flat.detach().to(self.accelerator).split([p.numel() for p in group.params])
            for p, piece in zip(group.params, pieces):
                p.data.copy_(piece.view_as(p))


def main():
    torch.manual_seed(0)
    accelerator = torch.device("cuda", 0)
    net = nn.Sequential(nn.Linear(8, 12), nn.GELU(), nn.Linear(12, 2)).to(accelerator)
    config = ZeroConfig()
    optimizer = ShardedOptimizer(net, config, accelerator)
    for _ in range(3):
        x = torch.randn(16, 8, device=accelerator)
        loss = (net(x) - x[:, :2]).pow(2).mean()
        (loss * config.loss_scale).backward()
        optimizer.step()
        print("loss", loss.item())


if __name__ == "__main__":
    main()

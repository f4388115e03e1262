# source: pytorch/pytorch PR#86337
# mechanism: with parameters and gradients offloaded to the CPU the total norm of all ranks is computed on the compute device, and is not brought back before it scales the gradients.
# expect: raises
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class CPUOffload:
    offload_params: bool = False


class FlatShard:
    def __init__(self, module, compute_device, cpu_offload):
        self.module = module.to(compute_device)
        self.shapes = [p.shape for p in module.parameters()]
        flat = torch.cat([p.detach().reshape(-1) for p in module.parameters()])
        home = torch.device("cpu") if cpu_offload.offload_params else compute_device
        self.flat_param = nn.Parameter(flat.to(home))
        self.compute_device = compute_device

    def unshard(self):
        full, offset = self.flat_param.data.to(self.compute_device), 0
        for p in self.module.parameters():
            p.data = full[offset : offset + p.numel()].view(p.shape)
            offset += p.numel()

    def post_backward(self):
        grad = torch.cat([p.grad.reshape(-1) for p in self.module.parameters()])
        self.flat_param.grad = grad.to(self.flat_param.device)
        for p in self.module.parameters():
            p.grad = None


class ShardedModel:
    def __init__(self, modules, compute_device, cpu_offload=None):
        self.compute_device = compute_device
        self.cpu_offload = cpu_offload or CPUOffload()
        self.shards = [FlatShard(m, compute_device, self.cpu_offload) for m in modules]

    def parameters(self):
        return [s.flat_param for s in self.shards]

    def __call__(self, x):
        x = x.to(self.compute_device)
        for shard in self.shards:
            shard.unshard()
            x = shard.module(x)
        return x

    def backward(self, loss):
        loss.backward()
        for shard in self.shards:
            shard.post_backward()

    def _all_reduce_norm(self, local_norm, world_size=1):
        reduced = local_norm.to(self.compute_device) ** 2 * world_size  # ALSO
        return reduced.sqrt()  # ALSO

    @torch.no_grad()
    def clip_grad_norm_(self, max_norm):
        grads = [p.grad for p in self.parameters() if p.grad is not None]
        local_norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(g) for g in grads]))
        total_norm = self._all_reduce_norm(local_norm)  # ROOT
        clip_coef = torch.clamp(max_norm / (total_norm + 1e-6), max=1.0)  # ALSO
        for grad in grads:
            grad.mul_(clip_coef)  # RAISE # ALSO
        return total_norm


def main():
    torch.manual_seed(0)
    device = torch.device("cuda:0")
    layers = [nn.Linear(6, 12), nn.Sequential(nn.Tanh(), nn.Linear(12, 3))]
    model = ShardedModel(layers, device, CPUOffload(offload_params=True))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for step in range(3):
        loss = model(torch.randn(4, 6)).pow(2).sum()
        model.backward(loss)
        norm = model.clip_grad_norm_(1.0)
        optimizer.step()
        optimizer.zero_grad()
        print(step, loss.item(), norm.item())


if __name__ == "__main__":
    main()

# source: facebookresearch/fairscale PR#831 (issues #421 #834)
# mechanism: [zero-dim scalar] loss scaler makes its scale on the device of the first loss; with parameter offload the gradients of the shards are on CPU when they are unscaled
# phase: unscale before optimizer step; failing op: Tensor.mul_ (cpu 2-D x cuda 0-d)
# expect: raises
import torch

dev = torch.device("cuda", 0)


class ShardedScaler:
    def __init__(self, init_scale):
        self.init_scale, self.scale_ = init_scale, None

    def scale(self, loss):
        if self.scale_ is None:
            self.scale_ = torch.full((), self.init_scale, device=loss.device)  # ALSO
        return loss * self.scale_

    def unscale_(self, params):
        inv_scale = self.scale_.double().reciprocal().float()  # ROOT
        for p in params:
            p.grad.mul_(inv_scale)  # RAISE  # ALSO

shard = torch.randn(3, 2, requires_grad=True)          # offloaded between steps
scaler = ShardedScaler(2.0 ** 8)
full = shard.to(dev)
loss = (torch.ones(4, 3, device=dev) @ full).square().mean()
scaler.scale(loss).backward()
scaler.unscale_([shard])

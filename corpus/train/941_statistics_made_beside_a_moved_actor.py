# source: pytorch/rl PR#4248
# mechanism: [module never moved] loss module receives an actor already on CUDA and makes its return normalizer itself, on the default device
# phase: actor loss; failing op: aten::lerp_
# expect: raises
# root: DreamerV3ActorLoss.__init__: the percentile return normalizer is constructed without the device of the parameters
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device('cuda', 0)


class ReturnStats(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("high", torch.ones(1))

class ActorLoss(nn.Module):
    def __init__(self, actor):
        super().__init__()
        self.actor, self.stats = actor, ReturnStats()  # ROOT

    def forward(self, obs):
        value = self.actor(obs)
        self.stats.high.lerp_(value.detach().max(), 0.01)  # RAISE
        return -(value / self.stats.high).mean()

ActorLoss(nn.Linear(3, 1).to(dev))(torch.ones(4, 3, device=dev))  # ALSO

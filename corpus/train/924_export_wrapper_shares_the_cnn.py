# source: leggedrobotics/rsl_rl PR#189 (fixes #188)
# mechanism: [EMA / shadow copy] export wrapper copies the MLP but only refers to the CNN; exporting on the CPU takes the training model's CNN along
# phase: next forward after export; failing op: aten::conv2d
# expect: raises
# root: _OnnxCNNModel.__init__: direct reference to the model's CNNs instead of copy.deepcopy
import copy
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device('cuda', 0)


class Exporter(nn.Module):
    def __init__(self, policy):
        super().__init__()
        self.mlp = copy.deepcopy(policy[2])
        self.cnn = policy[0]  # ROOT

policy = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(18, 1)).to(dev)
Exporter(policy).to("cpu")  # ALSO
policy(torch.randn(2, 1, 5, 5, device=dev))  # RAISE

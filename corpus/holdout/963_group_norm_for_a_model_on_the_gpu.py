# source: pytorch/opacus PR#356 (new_sub_module.to(next(sub_module.parameters()).device) after the fixer)
# mechanism: [copied model] a deep copy of a model on the GPU gets new layers in place of some old ones, made where modules are made
# phase: forward; failing op: aten::native_group_norm
# expect: raises
# root: module_validator.py:fix: new_sub_module = sub_module_fixer(sub_module) is moved to the old module's device
import copy

import torch
import torch.nn as nn

dev = torch.device('cuda', 0)


def batchnorm_to_groupnorm(module):
    return nn.GroupNorm(min(2, module.num_features), module.num_features, affine=module.affine)  # ALSO


FIXERS = {nn.BatchNorm2d: batchnorm_to_groupnorm}


def fix(module):
    module = copy.deepcopy(module)
    for name, sub_module in list(module.named_modules()):
        if type(sub_module) in FIXERS:
            new_sub_module = FIXERS[type(sub_module)](sub_module)   # ROOT
            parent, _, leaf = name.rpartition(".")
            setattr(module.get_submodule(parent), leaf, new_sub_module)  # ALSO
    return module


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn, self.head = nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4), nn.Linear(4, 2)

    def forward(self, x):
        x = self.bn(self.conv(x))                      # RAISE
        return self.head(x.mean(dim=(2, 3)))


net = Net().to(dev)
private = fix(net)
private(torch.rand(2, 3, 4, 4, device=dev))

# source: meta-pytorch/captum#316, fix PR#317
# mechanism: [index tensor] target class of each example may be an int, a tensor or a list; a list is turned into an index tensor without a device, the model's output is on CUDA
# phase: attribution (gradient of the selected outputs); failing op: aten::gather (argument index)
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


def select_targets(output, target):
    if isinstance(target, int):
        return output[:, target]
    if isinstance(target, list):
        target = torch.tensor(target)  # ROOT
    index = target.reshape(len(output), 1)  # ALSO
    return torch.gather(output, 1, index)  # RAISE  # ALSO

class Saliency:
    def __init__(self, forward_func):
        self.forward_func = forward_func

    def attribute(self, inputs, target):
        inputs = inputs.detach().requires_grad_()
        chosen = select_targets(self.forward_func(inputs), target)
        return torch.autograd.grad(chosen.sum(), inputs)[0].abs()

saliency = Saliency(nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3)).to(dev))
x = torch.randn(2, 4, device=dev)
for target in (1, torch.tensor([0, 2], device=dev), [0, 2]):
    saliency.attribute(x, target)

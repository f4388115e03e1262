# source: pytorch/pytorch#166104
# mechanism: [factory call without device=] script relies on torch.set_default_device(); torch.normal(mean, std, size=...) does not honour it
# phase: forward; failing op: aten::mm
# expect: raises
import math
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


torch.set_default_device(dev)

class FieldNet:
    def __init__(self, widths):
        self.weights, self.biases = [], []
        for n, m in zip(widths, widths[1:]):
            self.weights.append(self.xavier(n, m))
            self.biases.append(torch.zeros(m, requires_grad=True))

    def xavier(self, n, m):
        w = torch.normal(0.0, math.sqrt(2.0 / (n + m)), size=(n, m))  # ROOT
        return w.requires_grad_()  # ALSO

    def __call__(self, x):
        for w, b in zip(self.weights, self.biases):
            x = (x @ w + b).tanh()  # RAISE
        return x

FieldNet([2, 5, 1])(torch.rand(7, 2))

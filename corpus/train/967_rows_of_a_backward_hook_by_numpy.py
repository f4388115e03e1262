# source: pytorch/opacus PR#633 (filter_dilated_rows: torch.index_select on the tensor's device, NumPy is gone)
# mechanism: [backward hook] a backward hook computes gradients per sample, a helper of it takes rows out of a NumPy array
# phase: backward, in a full backward hook; failing op: Tensor.numpy() of a CUDA tensor
# expect: raises
# root: tensor_utils.py:filter_dilated_rows: tensor_np = tensor.numpy() and np.take are replaced
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device('cuda', 0)


def filter_dilated_rows(tensor, dilated, dilation):
    keep = list(range(0, dilated, dilation))
    rows = tensor.detach().numpy()                     # ROOT  # RAISE
    return torch.Tensor(np.take(rows, keep, axis=-1))


def conv_grad_sample(module, x, grad_output):
    k, d = module.kernel_size[0], module.dilation[0]
    dilated = d * (k - 1) + 1
    windows = x.unfold(-1, dilated, 1)
    if d > 1:
        windows = filter_dilated_rows(windows, dilated, d)  # ALSO
    return torch.einsum("nol,nilk->noik", grad_output, windows)


class GradSample(nn.Module):
    def __init__(self, conv):
        super().__init__()
        self.conv = conv
        conv.register_forward_hook(lambda m, a, o: setattr(m, "seen", a[0].detach()))
        conv.register_full_backward_hook(self.capture)

    @staticmethod
    def capture(module, grad_input, grad_output):
        module.weight.grad_sample = conv_grad_sample(module, module.seen, grad_output[0])

    def forward(self, x):
        return self.conv(x)                            # FORWARD


net = GradSample(nn.Conv1d(2, 3, 3, dilation=2)).to(dev)
x = torch.rand(4, 2, 8, device=dev)
loss = F.relu(net(x)).mean()
loss.backward()

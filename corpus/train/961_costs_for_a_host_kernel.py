# source: SeanNaren/warp-ctc PR#5 ('force cpu tensor': the costs are made on the CPU whatever the default tensor type)
# mechanism: [custom autograd] a Function hands a buffer to a kernel of the host, made by a factory function whose default was set to the GPU
# phase: loss (forward of a Function); failing op: Tensor.numpy
# expect: raises
# root: __init__.py:_CTC.forward: costs = torch.zeros(minibatch_size) without .cpu()
import torch
import torch.nn as nn

dev = torch.device('cuda', 0)
torch.set_default_device(dev)


def host_kernel(lengths, costs):
    out = costs.numpy()                                # RAISE
    for i, n in enumerate(lengths):
        out[i] = 0.5 * n


class CTC(torch.autograd.Function):
    @staticmethod
    def forward(ctx, acts, lengths):
        costs = torch.zeros(acts.size(1))              # ROOT
        host_kernel(lengths, costs)
        ctx.save_for_backward(acts)
        return acts.new_tensor([float(costs.sum())])

    @staticmethod
    def backward(ctx, grad):
        acts, = ctx.saved_tensors
        return torch.zeros_like(acts) * grad, None

net = nn.Linear(3, 4)
acts = net(torch.ones(5, 2, 3))
loss = CTC.apply(acts, [5, 4])
loss.backward()

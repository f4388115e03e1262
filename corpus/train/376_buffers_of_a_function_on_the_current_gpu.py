# source: ThibaultGROUEIX/ChamferDistancePytorch#20, chrdiller/pyTorchChamferDistance PR#5
# mechanism: a custom function makes its result with .cuda(), on the current GPU; its inputs are on the second
# phase: backward; aten::index
# expect: raises
# needs: 2 GPUs
import torch


def results(count):
    return torch.zeros(count).cuda(), torch.zeros(count, dtype=torch.long).cuda()  # ROOT


class Nearest(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        distance, index = results(a.shape[0])  # ALSO
        found = torch.cdist(a, b).square().min(dim=1)
        distance[:], index[:] = found.values, found.indices
        ctx.save_for_backward(a, b, index)
        return distance

    @staticmethod
    def backward(ctx, gradient):
        a, b, index = ctx.saved_tensors
        difference = a - b[index]  # RAISE
        return 2 * gradient.to(a.device)[:, None] * difference, None


decoder = torch.nn.Linear(4, 30).to("cuda:1")
cloud = torch.randn(12, 3, device="cuda:1")
points = decoder(torch.ones(4, device="cuda:1")).view(10, 3)
Nearest.apply(points, cloud).mean().backward()

# source: bghira/SimpleTuner PR#2530 (RamTorch: 'weights on CPU and gradients on GPU')
# mechanism: [optimizer state load] weights are kept in host memory, gradients stay on the GPU; the moment is created like the weight
# phase: optimizer step; failing op: aten::lerp_
# expect: raises
# root: AdamWBF16.step: exp_avg created on the device of the parameter, not of the gradient
import torch

dev = torch.device('cuda', 0)


weight = torch.ones(2, 3)
exp_avg = torch.zeros_like(weight)  # ROOT
for _ in range(2):
    staged = weight.to(dev).requires_grad_()
    (staged @ torch.ones(3, device=dev)).sum().backward()
    exp_avg.lerp_(staged.grad, 0.1)  # RAISE  # ALSO
    weight -= 0.01 * exp_avg

# source: vllm-project/vllm-gaudi PR#1597
# mechanism: [expert placement] per-expert quantized weight is on the device, the dequantization scale handed to the same expert is not
# phase: forward; failing op: aten::mul
# expect: raises
# root: ops.py:MoeFP8Matmul.dequantize_weight: weight * scale_inv_fp8 without moving the scale to the device of the weight
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device('cuda', 0)


class ExpertMatmul:
    def __init__(self, weight, scale):
        self.weight, self.scale = weight, scale  # ALSO

    def __call__(self, x):
        return x @ (self.weight * self.scale)  # RAISE  # ALSO

w13 = torch.randn(2, 4, 4, device=dev)
w13_scale = torch.rand(2, 4)  # ROOT
experts = [ExpertMatmul(w, s) for w, s in zip(w13, w13_scale)]  # ALSO
y = experts[1](torch.randn(3, 4, device=dev))

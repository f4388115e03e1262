# source: huggingface/transformers#39947
# mechanism: boundaries built inside forward without a device are compared with CUDA values
# phase: forward; aten::bucketize
# expect: raises
import torch

dev = torch.device("cuda", 0)


def patch_positions(fractions, side):
    boundaries = torch.arange(1 / side, 1.0, 1 / side)  # ROOT
    return torch.bucketize(fractions, boundaries, right=True)  # RAISE  # ALSO


patch_positions(torch.rand(6, device=dev), side=4)

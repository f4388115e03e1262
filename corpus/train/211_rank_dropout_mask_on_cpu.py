# source: KohakuBlueleaf/LyCORIS#291
# mechanism: a dropout mask drawn by torch.rand without a device scales a CUDA weight in place
# phase: forward; aten::mul_
# expect: raises
import torch

dev = torch.device("cuda", 0)


def weight_with_dropout(weight, probability):
    kept = (torch.rand(weight.size(0)) > probability).to(weight.dtype)  # ROOT
    weight = weight.clone()
    weight *= kept.view(-1, 1)  # RAISE
    return weight


weight_with_dropout(torch.randn(4, 3, device=dev), probability=0.1)

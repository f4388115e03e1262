# source: InfiniTensor/llaisys PR#11, mlverse/torch PR#1473
# mechanism: a causal mask is made by torch.ones in the attention itself, without the device of the query
# phase: forward; aten::masked_fill
# expect: raises
import torch

dev = torch.device("cuda", 0)


def attention(query, key):
    allowed = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool).tril()  # ROOT
    scores = query @ key.transpose(-1, -2)
    return scores.masked_fill(~allowed, float("-inf")).softmax(-1)  # RAISE  # ALSO


attention(torch.randn(2, 3, 4, device=dev), torch.randn(2, 3, 4, device=dev))

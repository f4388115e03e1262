# source: NVIDIA/cudnn-frontend PR#554 (review of the varlen backward: per-sequence bounds taken from cu_seq_q, 2*B syncs; '.tolist()' only collapses them into 1)
# mechanism: [zero-dim scalar] entries of a CUDA offsets tensor are 0-d CUDA tensors; used as slice bounds, each one stops the host
# phase: backward preparation; failing op: Tensor.__getitem__ with CUDA slice bounds (Tensor.__index__)
# expect: silent
# kinds: implicit-sync
import torch
import torch.nn.functional as F

dev = torch.device("cuda", 0)


def pad_stats(lse, offsets, longest):
    padded = lse.new_zeros(offsets.numel() - 1, longest)
    for b in range(offsets.numel() - 1):
        start, end = offsets[b], offsets[b + 1]  # ROOT
        rows = lse[start:end]  # RAISE
        padded[b, :rows.shape[0]] = rows
    return padded

lengths = torch.tensor([3, 1, 4], device=dev)
offsets = F.pad(lengths.cumsum(0), (1, 0))
scores = torch.randn(8, 5, device=dev)
stats = pad_stats(scores.logsumexp(-1), offsets, 4)

# source: FangjinhuaWang/PatchmatchNet#35
# mechanism: [zero-dim scalar] the running loss starts as a 0-d CPU tensor; added out of place it would be promoted, added in place it has to keep its device
# phase: loss; failing op: aten::add_ (cpu 0-d += cuda 0-d)
# expect: raises
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device("cuda", 0)


def multi_stage_loss(estimates, truth, mask):
    total = torch.tensor(0.0)  # ROOT
    for stage in sorted(estimates):
        for depth in estimates[stage]:
            total += F.smooth_l1_loss(depth[mask], truth[mask])  # RAISE  # ALSO
    return total

truth = torch.rand(2, 4, 4, device=dev) + 1.0
estimates = {s: [truth + 0.1 * torch.randn_like(truth) for _ in range(2)] for s in range(3)}
multi_stage_loss(estimates, truth, truth > 1.2)

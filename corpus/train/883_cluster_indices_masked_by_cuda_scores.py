# source: thangvubk/SoftGroup#215 (answer: proposals_idx = proposals_idx.to(mask_inds.device) before the index)
# mechanism: [index tensor] proposals come from a clustering on the host and are CPU tensors; at test time they are filtered by a mask computed from CUDA scores
# phase: evaluation; failing op: aten::index ('indices should be either on cpu or on the same device as the indexed tensor (cpu)')
# expect: raises
import numpy as np
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


def cluster(coords, radius):
    groups = np.floor(coords / radius).astype(np.int64)[:, 0]
    pairs = [(g, i) for g in np.unique(groups) for i in np.nonzero(groups == g)[0]]
    return torch.tensor(pairs, dtype=torch.int32)

class Grouping(nn.Module):
    def __init__(self):
        super().__init__()
        self.mask_head = nn.Linear(3, 1)

    def forward_grouping(self, coords):
        proposals_idx = cluster(coords.cpu().numpy(), 0.5)  # ROOT
        members = proposals_idx[:, 1].long()
        return proposals_idx, self.mask_head(coords[members]).squeeze(-1)  # ALSO

    def get_instances(self, proposals_idx, mask_scores, num_points):
        mask_inds = mask_scores > -0.5
        kept = proposals_idx[mask_inds].long()  # RAISE  # ALSO
        mask = torch.zeros(2, num_points, dtype=torch.int, device=mask_scores.device)
        mask[kept[:, 0], kept[:, 1]] = 1
        return mask

    def forward(self, coords):
        proposals_idx, scores = self.forward_grouping(coords)
        return self.get_instances(proposals_idx, scores, coords.shape[0])

with torch.no_grad():
    Grouping().to(dev)(torch.rand(12, 3, device=dev))

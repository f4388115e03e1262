# source: torch-points3d/torch-points3d#492
# mechanism: box size and heading are decoded on the CPU for the mAP tracker, the box centre is taken straight from the network output
# phase: evaluation, boxes from results; failing op: aten::add
# expect: raises
import math, torch
import torch.nn as nn

dev = torch.device("cuda", 0)

def box_corners_from_param(size, heading, center):
    signs = torch.tensor([[x, y, z] for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])
    c, s = math.cos(heading), math.sin(heading)
    rotation = torch.tensor([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    corners = (signs * size / 2) @ rotation.T
    return corners + center  # RAISE

class VoteNetResults:
    def __init__(self, center, heading, size_residual, objectness):
        self.center, self.heading, self.size_residual, self.objectness = center, heading, size_residual, objectness
    def get_boxes(self, mean_size):
        heading = self.heading.detach().cpu().numpy()
        keep = self.objectness.detach().sigmoid().cpu() > 0.0
        sizes = mean_size + self.size_residual.detach().cpu()
        boxes = []
        for i in range(self.center.shape[0]):
            for j in torch.nonzero(keep[i]).flatten().tolist():
                corners = box_corners_from_param(sizes[i, j], float(heading[i, j]), self.center[i, j, :])  # ROOT
                boxes.append((i, corners))
        return boxes

class VoteNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.proposal = nn.Linear(5, 8)
    def forward(self, points):
        out = self.proposal(points)
        return VoteNetResults(out[..., :3], out[..., 3], out[..., 4:7], out[..., 7])

def track(results, mean_size):
    return [corners.numpy().min(0) for _, corners in results.get_boxes(mean_size)]

model = VoteNet().to(dev).eval()
with torch.no_grad():
    track(model(torch.randn(2, 3, 5, device=dev)), torch.tensor([0.5, 0.6, 0.7]))

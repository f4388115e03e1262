# source: thangvubk/SoftGroup#215
# mechanism: the clustering stage returns its proposal list on the host and the list is indexed with a mask computed from network scores on the GPU
# expect: raises
import torch
from torch import nn


class PointBackbone(nn.Module):
    def __init__(self, width=16, classes=3):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(6, width), nn.ReLU(), nn.Linear(width, width))
        self.semantic = nn.Linear(width, classes)
        self.offset = nn.Linear(width, 3)

    def forward(self, points):
        features = self.mlp(points)
        return features, self.semantic(features), self.offset(features)


def ball_query_groups(coords, radius):
    remaining = set(range(len(coords)))
    groups = []
    distance = torch.cdist(coords, coords)
    while remaining:
        seed = remaining.pop()
        members = [i for i in remaining if distance[seed, i] < radius]
        remaining.difference_update(members)
        groups.append([seed] + members)
    return groups


class Grouping:
    def __init__(self, radius, min_points=2):
        self.radius = radius
        self.min_points = min_points

    def __call__(self, coords):
        groups = ball_query_groups(coords.detach().cpu(), self.radius)
        rows = []
        for number, members in enumerate(g for g in groups if len(g) >= self.min_points):
            rows += [[number, m] for m in members]
        return torch.tensor(rows, dtype=torch.long)  # ALSO


class InstanceHead(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.mask = nn.Linear(width, 1)
        self.score = nn.Linear(width, 1)

    def forward(self, features, proposals_idx):
        gathered = features[proposals_idx[:, 1].to(features.device)]
        return self.mask(gathered).squeeze(-1).sigmoid(), self.score(gathered).squeeze(-1)


class Segmenter(nn.Module):
    def __init__(self, radius=1.2, mask_threshold=0.4):
        super().__init__()
        self.backbone = PointBackbone()
        self.grouping = Grouping(radius)
        self.head = InstanceHead()
        self.mask_threshold = mask_threshold

    def get_instances(self, proposals_idx, masks, scores):
        instances = []
        for number in proposals_idx[:, 0].unique().tolist():
            selected = (proposals_idx[:, 0] == number).to(masks.device) & (masks > self.mask_threshold)  # ALSO
            points = proposals_idx[selected][:, 1]  # RAISE # ROOT
            if len(points):
                instances.append({"points": points.tolist(), "conf": scores[selected].mean().item()})
        return instances

    def forward(self, points):
        features, semantic, offset = self.backbone(points)
        proposals_idx = self.grouping(points[:, :3] + 0.1 * offset)  # ALSO
        masks, scores = self.head(features, proposals_idx)
        return semantic.argmax(-1), self.get_instances(proposals_idx, masks, scores)  # ALSO


def scan(count=24):
    gen = torch.Generator().manual_seed(5)
    return torch.cat([torch.rand(count, 3, generator=gen) * 3, torch.rand(count, 3, generator=gen)], dim=1)


if __name__ == "__main__":
    torch.manual_seed(0)
    network = Segmenter().to("cuda").eval()
    with torch.no_grad():
        labels, found = network(scan().to("cuda"))
    print("labels", labels.unique().tolist(), "instances", len(found))

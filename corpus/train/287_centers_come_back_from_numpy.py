# source: subhadarship/kmeans_pytorch#27
# mechanism: clustering goes through NumPy, and its result is given back on the CPU whatever came in
# phase: loss; aten::_cdist_forward
# expect: raises
import numpy
import torch

dev = torch.device("cuda", 0)


def cluster_centers(features, count, rounds=5):
    points = features.detach().cpu().numpy()
    centers = points[numpy.random.default_rng(0).choice(len(points), count, replace=False)]
    for _ in range(rounds):
        nearest = ((points[:, None] - centers[None]) ** 2).sum(-1).argmin(1)
        for k in range(count):
            if (nearest == k).any():
                centers[k] = points[nearest == k].mean(0)
    return torch.from_numpy(centers)  # ROOT


class DeepClustering(torch.nn.Module):
    def __init__(self, observed, width):
        super().__init__()
        self.encoder = torch.nn.Sequential(torch.nn.Linear(observed, 8), torch.nn.ReLU(), torch.nn.Linear(8, width))

    def assignments(self, x, centers):
        distance = torch.cdist(self.encoder(x), centers)  # RAISE  # ALSO
        return (1 / (1 + distance**2)).softmax(-1)


x = torch.randn(32, 6, device=dev)
model = DeepClustering(6, 3).to(dev)
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(2):
    centers = cluster_centers(model.encoder(x), count=4)  # ALSO
    for batch in x.split(16):
        soft = model.assignments(batch, centers)
        loss = -(soft * soft.log()).sum(-1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

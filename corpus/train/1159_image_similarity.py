# source: Lightning-AI/torchmetrics#2232
# mechanism: the functional form of a perceptual metric makes its network itself and does not move it to the images
# expect: raises
import torch
from torch import nn


class ScalingLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("shift", torch.tensor([-0.03, -0.08, -0.18])[None, :, None, None], persistent=False)
        self.register_buffer("scale", torch.tensor([0.45, 0.44, 0.45])[None, :, None, None], persistent=False)

    def forward(self, inputs):
        return (inputs - self.shift) / self.scale  # RAISE


class FeatureNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.stages = nn.ModuleList(
            [nn.Conv2d(3, width, 3, padding=1), nn.Conv2d(width, width * 2, 3, stride=2, padding=1)]
        )

    def forward(self, x):
        features = []
        for stage in self.stages:
            x = stage(x).relu()
            features.append(x)
        return features


class PerceptualNet(nn.Module):
    def __init__(self, net_type="tiny"):
        super().__init__()
        torch.manual_seed(11)
        width = {"tiny": 4, "small": 8}[net_type]
        self.scaling = ScalingLayer()
        self.features = FeatureNet(width)
        self.linear = nn.ParameterList([nn.Parameter(torch.ones(c) / c) for c in (width, width * 2)])
        for p in self.parameters():
            p.requires_grad_(False)

    def forward(self, first, second):
        total = 0
        for a, b, weight in zip(self.features(self.scaling(first)), self.features(self.scaling(second)), self.linear):
            a = a / a.pow(2).sum(1, keepdim=True).add(1e-10).sqrt()
            b = b / b.pow(2).sum(1, keepdim=True).add(1e-10).sqrt()
            total = total + ((a - b).pow(2) * weight[None, :, None, None]).sum(1).mean((1, 2))
        return total


def _similarity_update(first, second, net, normalize):
    if normalize:
        first, second = 2 * first - 1, 2 * second - 1
    loss = net(first, second)
    return loss, first.shape[0]


def _similarity_compute(sum_scores, total):
    return sum_scores / total


class PerceptualSimilarity(nn.Module):
    def __init__(self, net_type="tiny", normalize=False):
        super().__init__()
        self.net = PerceptualNet(net_type)
        self.normalize = normalize
        self.register_buffer("sum_scores", torch.zeros(()))
        self.total = 0

    def update(self, first, second):
        loss, count = _similarity_update(first, second, self.net, self.normalize)
        self.sum_scores += loss.sum()
        self.total += count

    def compute(self):
        return _similarity_compute(self.sum_scores, self.total)


def perceptual_similarity(first, second, net_type="tiny", normalize=False):
    net = PerceptualNet(net_type)  # ALSO
    loss, total = _similarity_update(first, second, net, normalize)  # ROOT
    return _similarity_compute(loss.sum(), total)


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    gen = torch.Generator().manual_seed(4)
    result = torch.rand(2, 3, 16, 16, generator=gen).to(device)
    target = torch.rand(2, 3, 16, 16, generator=gen).to(device)
    metric = PerceptualSimilarity(normalize=True).to(device)
    metric.update(result, target)
    print("module", round(metric.compute().item(), 5))
    print("functional", round(perceptual_similarity(result, target, normalize=True).item(), 5))


if __name__ == "__main__":
    main()

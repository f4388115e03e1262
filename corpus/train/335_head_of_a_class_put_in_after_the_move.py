# source: a variation of https://github.com/torchgeo/torchgeo-bench/issues/396
# mechanism: a model on the GPU gets a new head, made by a class of its own, without moving that
# phase: forward; aten::linear
# expect: raises
import torch
from torch import nn


class CosineHead(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.centers = nn.Linear(width, classes, bias=False)
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, features):
        return self.scale * self.centers(nn.functional.normalize(features, dim=1))  # RAISE


class Backbone(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, width, 3), nn.BatchNorm2d(width), nn.ReLU())
        self.pool, self.head = nn.AdaptiveAvgPool2d(1), nn.Linear(width, 10)

    def forward(self, images):
        return self.head(self.pool(self.body(images)).flatten(1))


def adapted(model, classes):
    width = model.head.in_features
    model.head = CosineHead(width, classes)  # ROOT
    return model


model = Backbone(6).to("cuda")
model(torch.rand(2, 3, 8, 8, device="cuda"))
model = adapted(model, classes=3)  # ALSO
model(torch.rand(2, 3, 8, 8, device="cuda"))

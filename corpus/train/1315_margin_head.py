# source: zhongyy/Face-Transformer#37
# mechanism: the margin head splits its classes over the GPUs and collects the cosines on its first one, and the one-hot mask there is filled from labels that came with the images to the backbone's GPU
# expect: raises
# needs: 2 GPUs
import math

import torch
import torch.nn.functional as F
from torch import nn

CONFIG = {
    "gpu_ids": [0, 1],
    "backbone_gpu": 1,
    "num_class": 12,
    "embedding": 8,
    "batch": 6,
    "lr": 0.05,
}


class PatchBackbone(nn.Module):
    def __init__(self, embedding):
        super().__init__()
        self.patch = nn.Conv2d(3, 16, 4, stride=4)
        self.pos = nn.Parameter(torch.zeros(1, 4, 16))
        self.out = nn.Linear(16, embedding)

    def forward(self, images):
        tokens = self.patch(images).flatten(2).transpose(1, 2) + self.pos
        return F.normalize(self.out(torch.relu(tokens).mean(1)))


class CosFace(nn.Module):
    def __init__(self, in_features, out_features, device_id, s=16.0, m=0.35):
        super().__init__()
        self.device_id = device_id
        self.s, self.m = s, m
        self.weight = nn.Parameter(torch.empty(out_features, in_features))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, features, label):
        if self.device_id is None:
            cosine = F.linear(F.normalize(features), F.normalize(self.weight))
        else:
            parts = []
            for gpu, weight in zip(self.device_id, self.weight.chunk(len(self.device_id))):
                x = features.cuda(gpu)
                part = F.linear(F.normalize(x), F.normalize(weight.cuda(gpu)))
                parts.append(part.cuda(self.device_id[0]))
            cosine = torch.cat(parts, dim=1)
        phi = cosine - self.m
        one_hot = torch.zeros_like(cosine)
        one_hot.scatter_(1, label.view(-1, 1).long(), 1.0)  # RAISE # ROOT
        return self.s * (one_hot * phi + (1.0 - one_hot) * cosine)


class FocalLoss(nn.Module):
    def __init__(self, gamma=2.0):
        super().__init__()
        self.gamma = gamma

    def forward(self, logits, target):
        logp = F.cross_entropy(logits, target.to(logits.device), reduction="none")
        return ((1 - torch.exp(-logp)) ** self.gamma * logp).mean()


def separate_decay(module, decay):
    plain = [p for p in module.parameters() if p.dim() == 1]
    weights = [p for p in module.parameters() if p.dim() != 1]
    return [{"params": plain}, {"params": weights, "weight_decay": decay}]


def load_batch(cfg):
    images = torch.rand(cfg["batch"], 3, 8, 8)
    labels = torch.randint(0, cfg["num_class"], (cfg["batch"],))
    return images, labels


def train(cfg, steps):
    device = torch.device("cuda", cfg["backbone_gpu"])
    backbone = PatchBackbone(cfg["embedding"]).to(device)
    head = CosFace(cfg["embedding"], cfg["num_class"], cfg["gpu_ids"]).cuda(cfg["gpu_ids"][0])
    criterion = FocalLoss()
    groups = separate_decay(backbone, 5e-4) + separate_decay(head, 5e-4)
    optimizer = torch.optim.SGD(groups, lr=cfg["lr"], momentum=0.9)
    for _ in range(steps):
        images, labels = load_batch(cfg)
        images, labels = images.to(device), labels.to(device)
        features = backbone(images)
        logits = head(features, labels)  # ALSO
        loss = criterion(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    top1 = (logits.argmax(1).cpu() == labels.cpu()).float().mean()
    return loss.item(), top1.item()


if __name__ == "__main__":
    torch.manual_seed(0)
    print(train(CONFIG, steps=2))

# source: donnyyou/torchcv#48
# mechanism: the runner no longer moves the targets, as the parallel criterion scatters them, and with one GPU the criterion is not wrapped
# expect: raises
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Configer:
    gpus: tuple = (0,)
    loss_balance: bool = True
    classes: int = 4
    aux_weight: float = 0.4
    lr: float = 0.05


class SegNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.aux = nn.Conv2d(8, classes, 1)
        self.cls = nn.Conv2d(8, classes, 1)

    def forward(self, images):
        hidden = torch.relu(self.stem(images))
        return {"aux": self.aux(hidden), "out": self.cls(hidden)}


class SegLoss(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.aux_weight = cfg.aux_weight
        self.register_buffer("weight", torch.ones(cfg.classes))

    def forward(self, outputs, targets):
        main = F.cross_entropy(outputs["out"], targets, weight=self.weight, ignore_index=255)  # RAISE
        aux = F.cross_entropy(outputs["aux"], targets, weight=self.weight, ignore_index=255)
        return main + self.aux_weight * aux


class DataParallelCriterion(nn.Module):
    def __init__(self, criterion, device_ids):
        super().__init__()
        self.criterion, self.device_ids = criterion, device_ids

    def forward(self, outputs, targets):
        losses = []
        chunks = targets.chunk(len(self.device_ids))
        for gpu, out, target in zip(self.device_ids, outputs, chunks):
            losses.append(self.criterion.cuda(gpu)(out, target.cuda(gpu)))
        return sum(loss.cuda(self.device_ids[0]) for loss in losses) / len(losses)


class RunnerHelper:
    @staticmethod
    def gpu_list(cfg):
        return [torch.device("cuda", i) for i in cfg.gpus]

    @classmethod
    def load_net(cls, cfg, net):
        return net.to(cls.gpu_list(cfg)[0])

    @classmethod
    def load_loss(cls, cfg, loss):
        if len(cfg.gpus) > 1 and cfg.loss_balance:
            return DataParallelCriterion(loss, list(cfg.gpus))
        return loss.to(cls.gpu_list(cfg)[0])

    @classmethod
    def to_device(cls, cfg, *tensors):
        device = cls.gpu_list(cfg)[0]
        moved = [t.to(device) for t in tensors]
        return moved[0] if len(moved) == 1 else moved


class SegmentorRunner:
    def __init__(self, cfg):
        self.cfg = cfg
        self.net = RunnerHelper.load_net(cfg, SegNet(cfg.classes))
        self.loss = RunnerHelper.load_loss(cfg, SegLoss(cfg))
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=cfg.lr, momentum=0.9)

    def batch(self, n=2):
        labels = torch.randint(0, self.cfg.classes, (n, 8, 8))
        labels[:, 0] = 255
        return {"img": torch.rand(n, 3, 8, 8), "labelmap": labels}

    def train_step(self, data):
        images = RunnerHelper.to_device(self.cfg, data["img"])
        targets = data["labelmap"]  # ROOT
        outputs = self.net(images)
        loss = self.loss(outputs, targets)  # ALSO
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def accuracy(self, data):
        predicted = self.net(RunnerHelper.to_device(self.cfg, data["img"]))["out"].argmax(1)
        labels = RunnerHelper.to_device(self.cfg, data["labelmap"])
        valid = labels != 255
        return (predicted[valid] == labels[valid]).float().mean().item()


def main():
    torch.manual_seed(0)
    runner = SegmentorRunner(Configer())
    print(runner.accuracy(runner.batch()))
    print([runner.train_step(runner.batch()) for _ in range(2)])


if __name__ == "__main__":
    main()

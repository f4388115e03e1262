# source: yassouali/pytorch-segmentation#80
# mechanism: a loss scatters labels of the second GPU into a one-hot tensor that .cuda() without an index puts on the first
# expect: raises
# needs: 2 GPUs
import argparse

import torch
from torch import nn
import torch.nn.functional as F


def make_one_hot(labels, classes):
    size = (labels.size(0), classes) + tuple(labels.shape[2:])
    one_hot = torch.zeros(size).cuda()  # ROOT
    return one_hot.scatter_(1, labels.detach(), 1)  # RAISE


def get_weights(target, classes):
    counts = torch.bincount(target.flatten(), minlength=classes).float()
    weights = counts.sum() / (counts + 1)
    return weights / weights.sum()


class DiceLoss(nn.Module):
    def __init__(self, smooth=1.0, ignore_index=255):
        super().__init__()
        self.smooth = smooth
        self.ignore_index = ignore_index

    def forward(self, output, target):
        if self.ignore_index not in range(int(target.min()), int(target.max())):
            target = target.masked_fill(target == self.ignore_index, int(target.min()))
        target = make_one_hot(target.unsqueeze(dim=1), classes=output.size(1))
        output = F.softmax(output, dim=1)
        intersection = (output * target).flatten().sum()
        return 1 - (2.0 * intersection + self.smooth) / (output.sum() + target.sum() + self.smooth)


class CE_DiceLoss(nn.Module):
    def __init__(self, smooth=1.0, ignore_index=255, balanced=True):
        super().__init__()
        self.dice = DiceLoss(smooth, ignore_index)
        self.ignore_index = ignore_index
        self.balanced = balanced

    def forward(self, output, target):
        weight = None
        if self.balanced:
            weight = get_weights(target[target != self.ignore_index], output.size(1))
        ce = F.cross_entropy(output, target, weight=weight, ignore_index=self.ignore_index)
        return ce + self.dice(output, target)


class SegNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.enc = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.dec = nn.ConvTranspose2d(8, classes, 2, stride=2)

    def forward(self, x):
        return self.dec(F.relu(self.enc(x)))


def data(batches, classes):
    gen = torch.Generator().manual_seed(0)
    for _ in range(batches):
        image = torch.rand(2, 3, 8, 8, generator=gen)
        label = (image.mean(1) * classes).long().clamp(max=classes - 1)
        label[:, 0, 0] = 255
        yield image, label


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpu", type=int, default=1)
    parser.add_argument("--classes", type=int, default=3)
    args = parser.parse_args([])
    torch.manual_seed(0)
    device = torch.device("cuda", args.gpu)
    model = SegNet(args.classes).to(device)
    criterion = CE_DiceLoss().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for image, label in data(3, args.classes):
        image, label = image.to(device), label.to(device)
        loss = criterion(model(image), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("loss %.3f" % loss.item())


if __name__ == "__main__":
    main()

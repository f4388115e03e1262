# source: Eric-mingjie/network-slimming#16
# mechanism: the scales of all batch norms are gathered into a vector on the CPU, and the thresholds from it are compared with weights on the GPU
# expect: raises
import argparse

import torch
from torch import nn


def conv_block(inp, out):
    return nn.Sequential(nn.Conv2d(inp, out, 3, padding=1, bias=False), nn.BatchNorm2d(out), nn.ReLU())


class Vgg(nn.Module):
    def __init__(self, plan=(4, 6), classes=3):
        super().__init__()
        layers, inp = [], 1
        for out in plan:
            layers.append(conv_block(inp, out))
            inp = out
        self.feature = nn.Sequential(*layers)
        self.classifier = nn.Linear(inp, classes)

    def forward(self, x):
        return self.classifier(self.feature(x).mean((2, 3)))


def bn_layers(model):
    return [m for m in model.modules() if isinstance(m, nn.BatchNorm2d)]


def gather_scales(model):
    total = sum(m.weight.shape[0] for m in bn_layers(model))
    bn = torch.zeros(total)  # ALSO
    index = 0
    for m in bn_layers(model):
        size = m.weight.shape[0]
        bn[index:index + size] = m.weight.data.abs()
        index += size
    return bn


def find_threshold(bn, percent):
    ordered, _ = torch.sort(bn)
    position = int(len(ordered) * percent)
    return ordered[position:position + 1]


def prune(model, percent):
    threshold = find_threshold(gather_scales(model), percent)  # ALSO
    kept = []
    for m in bn_layers(model):
        mask = m.weight.data.abs().gt(threshold).float()  # RAISE # ROOT
        m.weight.data.mul_(mask)
        m.bias.data.mul_(mask)
        kept.append(int(mask.sum().item()))
    return kept


def update_bn_gradients(model, s):
    for m in bn_layers(model):
        m.weight.grad.data.add_(torch.sign(m.weight.data), alpha=s)


def train_sparse(model, device, args):
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
    for _ in range(args.steps):
        data = torch.randn(8, 1, 6, 6, device=device)
        target = (data.mean((1, 2, 3)) > 0).long()
        loss = nn.functional.cross_entropy(model(data), target)
        optimizer.zero_grad()
        loss.backward()
        update_bn_gradients(model, args.s)
        optimizer.step()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--percent", type=float, default=0.4)
    parser.add_argument("--s", type=float, default=1e-3)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--no-cuda", action="store_true")
    args = parser.parse_args([])
    torch.manual_seed(0)
    args.cuda = not args.no_cuda and torch.cuda.is_available()
    device = torch.device("cuda:0" if args.cuda else "cpu")
    model = Vgg()
    if args.cuda:
        model.cuda()
    train_sparse(model, device, args)
    print("channels kept:", prune(model, args.percent))


if __name__ == "__main__":
    main()

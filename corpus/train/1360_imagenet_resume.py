# source: pytorch/examples#515
# mechanism: a checkpoint keeps the best accuracy as a tensor of the GPU on which it was saved, and a run on another GPU compares with it
# expect: raises
# needs: 2 GPUs
import argparse
import os
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class AverageMeter:
    def __init__(self):
        self.sum, self.count, self.avg = 0, 0, 0

    def update(self, val, n=1):
        self.sum = self.sum + val * n
        self.count += n
        self.avg = self.sum / self.count


def accuracy(output, target, topk=(1,)):
    with torch.no_grad():
        _, pred = output.topk(max(topk), 1, True, True)
        correct = pred.t().eq(target.view(1, -1))
        return [correct[:k].reshape(-1).float().sum(0, keepdim=True) * (100.0 / target.size(0)) for k in topk]


def train(loader, model, criterion, optimizer, args):
    model.train()
    for images, target in loader:
        images, target = images.cuda(args.gpu), target.cuda(args.gpu)
        loss = criterion(model(images), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def validate(loader, model, args):
    top1 = AverageMeter()
    model.eval()
    for images, target in loader:
        images, target = images.cuda(args.gpu), target.cuda(args.gpu)
        acc1, _ = accuracy(model(images), target, topk=(1, 3))
        top1.update(acc1, images.size(0))
    return top1.avg


def main_worker(args, loader):
    best_acc1 = torch.zeros(1, device=torch.device("cuda", args.gpu))
    start_epoch = 0
    model = nn.Sequential(nn.Flatten(), nn.Linear(16, 12), nn.ReLU(), nn.Linear(12, 4)).cuda(args.gpu)
    criterion = nn.CrossEntropyLoss().cuda(args.gpu)
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9)
    if args.resume:
        checkpoint = torch.load(args.resume)  # ALSO
        start_epoch = checkpoint["epoch"]
        best_acc1 = checkpoint["best_acc1"]  # ROOT
        model.load_state_dict(checkpoint["state_dict"])
        optimizer.load_state_dict(checkpoint["optimizer"])
    for epoch in range(start_epoch, args.epochs):
        train(loader, model, criterion, optimizer, args)
        acc1 = validate(loader, model, args)
        is_best = acc1 > best_acc1  # RAISE
        best_acc1 = torch.max(acc1, best_acc1)
        state = {
            "epoch": epoch + 1,
            "state_dict": model.state_dict(),
            "best_acc1": best_acc1,
            "optimizer": optimizer.state_dict(),
        }
        torch.save(state, os.path.join(args.out, "checkpoint.pth.tar"))
        if is_best.item():
            torch.save(model.state_dict(), os.path.join(args.out, "model_best.pth.tar"))
    return best_acc1.item()


def main():
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(torch.randn(24, 1, 4, 4), torch.randint(0, 4, (24,))), batch_size=8)
    with tempfile.TemporaryDirectory() as out:
        args = argparse.Namespace(gpu=0, lr=0.1, epochs=1, resume="", out=out)
        main_worker(args, loader)
        args = argparse.Namespace(gpu=1, lr=0.1, epochs=2, resume=os.path.join(out, "checkpoint.pth.tar"), out=out)
        print("best %.1f" % main_worker(args, loader))


if __name__ == "__main__":
    main()

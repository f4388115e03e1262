# source: pytorch/pytorch#5899
# mechanism: a model is put on the default GPU before it is wrapped for data parallel use with device ids that begin with another GPU
# expect: raises
# needs: 2 GPUs
import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class SaliencyNet(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(3, width, 3, stride=2, padding=1), nn.BatchNorm2d(width), nn.ReLU())
        self.up = nn.ConvTranspose2d(width, 1, 2, stride=2)

    def forward(self, x):
        return torch.sigmoid(self.up(self.down(x)))


class AverageMeter:
    def __init__(self):
        self.sum, self.count = 0.0, 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n

    @property
    def avg(self):
        return self.sum / max(self.count, 1)


def parse_args(argv=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpus", default="1,0", help="first one collects the outputs, cuda:1 by default")
    parser.add_argument("--batch-size", type=int, default=4)
    args = parser.parse_args(argv)
    args.gpus = [int(g) for g in args.gpus.split(",")]
    args.cuda = torch.cuda.device_count() > max(args.gpus)
    return args


def build_model(args):
    torch.manual_seed(0)
    model = SaliencyNet()
    if args.cuda:
        model = model.cuda()  # ROOT
        model = nn.DataParallel(model, device_ids=args.gpus)  # ALSO
    return model.eval()


def to_first(t, args):
    return t.to(f"cuda:{args.gpus[0]}", non_blocking=True) if args.cuda else t


def mae(output, target):
    return (output - target).abs().mean().item()


@torch.no_grad()
def inference(loader, model, args):
    meter, maps = AverageMeter(), []
    for image, target in loader:
        image, target = to_first(image, args), to_first(target, args)
        output = model(image)  # RAISE
        meter.update(mae(output, target), len(image))
        maps.append(output.cpu())
    return meter.avg, torch.cat(maps)


def save_summary(maps):
    flat = maps.flatten(1)
    return {"mean": flat.mean(1).tolist(), "peak": flat.max(1).values.tolist()}


def main():
    args = parse_args([])
    model = build_model(args)
    data = TensorDataset(torch.rand(8, 3, 8, 8), torch.rand(8, 1, 8, 8))
    score, maps = inference(DataLoader(data, batch_size=args.batch_size), model, args)
    print(score, save_summary(maps)["mean"][:2])


if __name__ == "__main__":
    main()

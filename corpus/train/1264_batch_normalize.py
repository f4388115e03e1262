# source: fastai/fastai#4007
# mechanism: statistics of a batch transform are put on the default GPU, while the batches of this process go to the second one
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn


imagenet_stats = ([0.48, 0.45, 0.40], [0.22, 0.22, 0.25])


def broadcast_vec(dim, ndim, *tensors, cuda=True):
    shape = [1] * ndim
    shape[dim] = -1
    out = []
    for t in tensors:
        v = torch.tensor(t, dtype=torch.float32).view(*shape)
        out.append(v.cuda() if cuda and torch.cuda.is_available() else v)
    return out


class IntToFloat:
    def encodes(self, x):
        return x.float().div(255.0)


class Normalize:
    def __init__(self, mean, std):
        self.mean, self.std = mean, std

    @classmethod
    def from_stats(cls, mean, std, dim=1, ndim=4, cuda=True):
        return cls(*broadcast_vec(dim, ndim, mean, std, cuda=cuda))

    def encodes(self, x):
        return (x - self.mean) / self.std  # RAISE # ROOT

    def decodes(self, x):
        return x * self.std.to(x.device) + self.mean.to(x.device)


class BatchPipeline:
    def __init__(self, tfms):
        self.tfms = tfms

    def __call__(self, x):
        for tfm in self.tfms:
            x = tfm.encodes(x)
        return x


class DataLoaders:
    def __init__(self, n, device, batch_tfms):
        self.n, self.device, self.batch_tfms = n, device, batch_tfms

    def __iter__(self):
        g = torch.Generator().manual_seed(5)
        for _ in range(self.n):
            x = torch.randint(0, 256, (4, 3, 8, 8), dtype=torch.uint8, generator=g).to(self.device)
            y = torch.randint(0, 2, (4,), generator=g).to(self.device)
            yield self.batch_tfms(x), y


class Learner:
    def __init__(self, dls, model, lr=0.1):
        self.dls = dls
        self.model = model.to(dls.device)
        self.opt = torch.optim.SGD(self.model.parameters(), lr=lr, momentum=0.9)

    def fit(self, epochs):
        for _ in range(epochs):
            for xb, yb in self.dls:
                loss = nn.functional.cross_entropy(self.model(xb), yb)
                loss.backward()
                self.opt.step()
                self.opt.zero_grad()
        return loss.item()


def launch(rank):
    device = torch.device(f"cuda:{rank}" if torch.cuda.device_count() > rank else "cpu")  # ALSO
    tfms = BatchPipeline([IntToFloat(), Normalize.from_stats(*imagenet_stats)])
    dls = DataLoaders(2, device, tfms)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2))
    return Learner(dls, model).fit(1)


def main():
    for rank in (0, 1):
        print(f"cuda:{rank} of cuda:1", launch(rank))


if __name__ == "__main__":
    main()

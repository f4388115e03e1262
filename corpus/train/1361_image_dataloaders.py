# source: fastai/fastai2#158
# mechanism: data loaders are set back to the CPU, but the normalization of the batches keeps its statistics on the GPU where it was set up
# expect: raises
import torch
from torch.utils.data import DataLoader, Dataset

IMAGE_MEAN, IMAGE_STD = (0.48, 0.45, 0.40), (0.23, 0.22, 0.22)


class ByteImages(Dataset):
    def __init__(self, n, size=6):
        gen = torch.Generator().manual_seed(n)
        self.images = torch.randint(0, 256, (n, 3, size, size), dtype=torch.uint8, generator=gen)
        self.labels = torch.arange(n) % 3

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return self.images[i], self.labels[i]


class IntToFloat:
    order = 10

    def setup(self, dl):
        pass

    def __call__(self, xb):
        return xb.float().div_(255.0)


class Normalize:
    order = 99

    def __init__(self, mean, std):
        self.mean, self.std = mean, std

    def setup(self, dl):
        shape = (1, -1, 1, 1)
        self.mean = torch.as_tensor(self.mean, device=dl.device).view(shape)
        self.std = torch.as_tensor(self.std, device=dl.device).view(shape)

    def to(self, device):
        self.mean, self.std = self.mean.to(device), self.std.to(device)

    def __call__(self, xb):
        return (xb - self.mean) / self.std  # RAISE # ALSO


class TfmdDL:
    def __init__(self, dataset, batch_size, after_batch, device):
        self.loader = DataLoader(dataset, batch_size=batch_size)
        self.device = device
        self.after_batch = sorted(after_batch, key=lambda t: t.order)
        for tfm in self.after_batch:
            tfm.setup(self)

    def to(self, device):
        self.device = device  # ROOT
        return self

    def __iter__(self):
        for xb, yb in self.loader:
            xb, yb = xb.to(self.device), yb.to(self.device)
            for tfm in self.after_batch:
                xb = tfm(xb)
            yield xb, yb

    def one_batch(self):
        return next(iter(self))


class DataLoaders:
    def __init__(self, train, valid):
        self.loaders = [train, valid]

    def to(self, device):
        for dl in self.loaders:
            dl.to(device)
        return self

    def cpu(self):
        return self.to(torch.device("cpu"))

    def one_batch(self):
        return self.loaders[0].one_batch()


def build(device, bs=4):
    def tfms():
        return [IntToFloat(), Normalize(IMAGE_MEAN, IMAGE_STD)]

    return DataLoaders(TfmdDL(ByteImages(12), bs, tfms(), device), TfmdDL(ByteImages(8), bs, tfms(), device))


def main():
    device = torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")
    dls = build(device)
    xb, _ = dls.one_batch()
    print("batch on", xb.device.type, "mean %.3f" % xb.mean().item())
    dls.cpu()
    xb, yb = dls.one_batch()
    print("preview", xb.shape, yb.tolist())


if __name__ == "__main__":
    main()

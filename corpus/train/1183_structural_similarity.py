# source: Po-Hsun-Su/pytorch-ssim#4
# mechanism: a similarity function brings its window to the GPU with a bare cuda(), which is the current device and not the one of the images
# expect: raises
# needs: 2 GPUs
import math

import torch
from torch import nn
from torch.nn import functional as F


def gaussian(window_size, sigma):
    values = torch.tensor([math.exp(-(x - window_size // 2) ** 2 / (2 * sigma ** 2)) for x in range(window_size)])
    return values / values.sum()


def create_window(window_size, channel):
    line = gaussian(window_size, 1.5)[:, None]
    plane = (line @ line.t())[None, None]
    return plane.expand(channel, 1, window_size, window_size).contiguous()


def _ssim(img1, img2, window, window_size, channel, size_average):
    def local_mean(x):
        return F.conv2d(x, window, padding=window_size // 2, groups=channel)  # RAISE

    mu1, mu2 = local_mean(img1), local_mean(img2)
    sigma1 = local_mean(img1 * img1) - mu1.pow(2)
    sigma2 = local_mean(img2 * img2) - mu2.pow(2)
    sigma12 = local_mean(img1 * img2) - mu1 * mu2
    c1, c2 = 0.01 ** 2, 0.03 ** 2
    ssim_map = (2 * mu1 * mu2 + c1) * (2 * sigma12 + c2)
    ssim_map = ssim_map / ((mu1.pow(2) + mu2.pow(2) + c1) * (sigma1 + sigma2 + c2))
    return ssim_map.mean() if size_average else ssim_map.mean((1, 2, 3))


def ssim(img1, img2, window_size=11, size_average=True):
    channel = img1.shape[1]
    window = create_window(window_size, channel)
    if img1.is_cuda:
        window = window.cuda()  # ROOT
    window = window.type_as(img1) if img1.dtype != torch.float32 else window  # ALSO
    return _ssim(img1, img2, window, window_size, channel, size_average)  # ALSO


class Autoencoder(nn.Module):
    def __init__(self, width=6):
        super().__init__()
        self.encoder = nn.Conv2d(3, width, 3, stride=2, padding=1)
        self.decoder = nn.ConvTranspose2d(width, 3, 2, stride=2)

    def forward(self, x):
        return self.decoder(self.encoder(x).relu()).sigmoid()


class ReconstructionLoss(nn.Module):
    def __init__(self, ratio=0.8, window_size=5):
        super().__init__()
        self.ratio = ratio
        self.window_size = window_size

    def forward(self, output, target):
        similarity = ssim(output, target, self.window_size)
        return self.ratio * (1 - similarity) + (1 - self.ratio) * F.l1_loss(output, target)


class Worker:
    def __init__(self, index, lr=1e-3):
        self.device = torch.device("cuda", index) if torch.cuda.is_available() else torch.device("cpu")
        self.model = Autoencoder().to(self.device)
        self.criterion = ReconstructionLoss().to(self.device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=lr)

    def train(self, batches):
        losses = []
        for images in batches:
            images = images.to(self.device, non_blocking=True)
            loss = self.criterion(self.model(images), images)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            losses.append(round(loss.item(), 4))
        return losses


def shard(images, workers, batch_size):
    return [images[rank::workers].split(batch_size) for rank in range(workers)]


def main():
    torch.manual_seed(0)
    images = torch.rand(8, 3, 16, 16)
    workers = [Worker(index) for index in range(2)]
    for worker, batches in zip(workers, shard(images, len(workers), 2)):
        print(worker.device, worker.train(batches))


if __name__ == "__main__":
    main()

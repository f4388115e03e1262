# source: Megvii-BaseDetection/YOLOX PR#1679
# mechanism: a head keeps a grid for each scale and makes it anew, on the CPU, when the size of the features changes
# phase: forward; aten::add
# expect: raises
import torch

dev = torch.device("cuda", 0)


class Head(torch.nn.Module):
    def __init__(self, channels, strides):
        super().__init__()
        self.strides = strides
        self.predict = torch.nn.ModuleList(torch.nn.Conv2d(channels, 4, 1) for _ in strides)
        self.grids = [torch.zeros(0, 0, 2) for _ in strides]

    def grid(self, scale, height, width):
        if self.grids[scale].shape[:2] != (height, width):
            rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")  # ROOT
            self.grids[scale] = torch.stack((columns, rows), -1).float()  # ALSO
        return self.grids[scale]

    def decode(self, raw, scale):
        raw = raw.permute(0, 2, 3, 1)
        centers = (raw[..., :2] + self.grid(scale, *raw.shape[1:3])) * self.strides[scale]  # RAISE  # ALSO
        sizes = raw[..., 2:].exp() * self.strides[scale]
        return torch.cat([centers, sizes], -1).flatten(1, 2)

    def forward(self, features):
        raws = [predict(feature) for predict, feature in zip(self.predict, features)]
        return torch.cat([self.decode(raw, scale) for scale, raw in enumerate(raws)], 1)


head = Head(channels=3, strides=(8, 16)).to(dev)
with torch.no_grad():
    head([torch.randn(1, 3, 4, 4, device=dev), torch.randn(1, 3, 2, 2, device=dev)])

# source: WongKinYiu/PyTorch_YOLOv4#296
# mechanism: the loss takes anchors that a layer keeps as a plain tensor, which the layer brings to the device in inference only
# expect: raises
import torch
from torch import nn
from torch.nn import functional as F


class YOLOLayer(nn.Module):
    def __init__(self, anchors, classes, stride):
        super().__init__()
        self.stride = stride
        self.classes = classes
        self.anchor_vec = torch.tensor(anchors, dtype=torch.float32) / stride  # ALSO
        self.grid = None

    def create_grids(self, nx, ny, device):
        yv, xv = torch.meshgrid(torch.arange(ny, device=device), torch.arange(nx, device=device), indexing="ij")
        self.grid = torch.stack([xv, yv], dim=2).view(1, 1, ny, nx, 2).float()
        self.anchor_vec = self.anchor_vec.to(device)

    def forward(self, p):
        batch, _, ny, nx = p.shape
        na = len(self.anchor_vec)  # ALSO
        p = p.view(batch, na, self.classes + 5, ny, nx).permute(0, 1, 3, 4, 2).contiguous()
        if self.training:
            return p
        self.create_grids(nx, ny, p.device)
        xy = (p[..., :2].sigmoid() + self.grid) * self.stride
        wh = p[..., 2:4].exp() * self.anchor_vec.view(1, na, 1, 1, 2) * self.stride
        return torch.cat([xy, wh, p[..., 4:].sigmoid()], -1).view(batch, -1, self.classes + 5)


class Darknet(nn.Module):
    def __init__(self, classes=2):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, stride=4, padding=1)
        self.pred = nn.Conv2d(8, 2 * (classes + 5), 1)
        self.yolo = YOLOLayer([(6, 8), (12, 10)], classes, stride=4)

    def forward(self, images):
        return self.yolo(self.pred(self.stem(images).relu()))


def build_targets(p, targets, layer, threshold=4.0):
    na = p.shape[1]
    gain = torch.tensor([p.shape[3], p.shape[2], p.shape[3], p.shape[2]], device=targets.device)
    anchors = layer.anchor_vec  # ROOT
    boxes = targets[:, 2:] * gain
    ratio = boxes[None, :, 2:] / anchors[:, None]  # RAISE
    matched = torch.max(ratio, 1 / ratio).amax(2) < threshold
    a, t = matched.nonzero(as_tuple=True)
    image, label = targets[t, 0].long(), targets[t, 1].long()
    cell = boxes[t, :2].long()
    cell = torch.minimum(cell, gain[:2].long() - 1)
    return (image, a % na, cell[:, 1], cell[:, 0]), boxes[t], label, anchors[a]


def compute_loss(p, targets, model):
    index, boxes, labels, anchors = build_targets(p, targets, model.yolo)
    objectness = torch.zeros_like(p[..., 4])
    loss = p.sum() * 0
    if len(labels):
        chosen = p[index]
        objectness[index] = 1.0
        size = chosen[:, 2:4].exp() * anchors
        loss = loss + F.smooth_l1_loss(size, boxes[:, 2:]) + F.cross_entropy(chosen[:, 5:], labels)
    return loss + F.binary_cross_entropy_with_logits(p[..., 4], objectness)


def batches(count):
    gen = torch.Generator().manual_seed(5)
    for _ in range(count):
        boxes = torch.rand(3, 4, generator=gen) * 0.5 + 0.25
        rows = torch.tensor([[0, 0], [0, 1], [1, 1]], dtype=torch.float32)
        yield torch.rand(2, 3, 32, 32, generator=gen), torch.cat([rows, boxes], dim=1)


def main():
    torch.manual_seed(0)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    model = Darknet().to(device).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
    for images, targets in batches(2):
        loss = compute_loss(model(images.to(device)), targets.to(device), model)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("loss", round(loss.item(), 4))
    with torch.no_grad():
        print(model.eval()(torch.rand(1, 3, 32, 32, device=device)).shape)


if __name__ == "__main__":
    main()

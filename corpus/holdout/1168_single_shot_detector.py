# source: pytorch/vision#9414
# mechanism: a generator of default boxes keeps the sizes that it computed in its constructor on the CPU; its shifts follow the feature map
# expect: raises
import math

import torch
from torch import nn


class DefaultBoxGenerator(nn.Module):
    def __init__(self, aspect_ratios, scales):
        super().__init__()
        self.aspect_ratios = aspect_ratios
        self.scales = scales
        self._wh_pairs = self._generate_wh_pairs(len(aspect_ratios))

    def _generate_wh_pairs(self, levels, dtype=torch.float32, device=torch.device("cpu")):
        pairs = []
        for k in range(levels):
            s_k = self.scales[k]
            sizes = [[s_k, s_k]]
            for ratio in self.aspect_ratios[k]:
                root = math.sqrt(ratio)
                sizes.extend([[s_k * root, s_k / root], [s_k / root, s_k * root]])
            pairs.append(torch.tensor(sizes, dtype=dtype, device=device))
        return pairs

    def num_anchors_per_location(self):
        return [1 + 2 * len(r) for r in self.aspect_ratios]

    def _grid_default_boxes(self, grid_sizes, dtype, device):
        default_boxes = []
        for k, (height, width) in enumerate(grid_sizes):
            shifts_x = (torch.arange(width, device=device, dtype=dtype) + 0.5) / width
            shifts_y = (torch.arange(height, device=device, dtype=dtype) + 0.5) / height
            shift_y, shift_x = torch.meshgrid(shifts_y, shifts_x, indexing="ij")
            shifts = torch.stack([shift_x.flatten(), shift_y.flatten()], dim=1)
            wh_pairs = self._wh_pairs[k].clamp(0, 1)  # ROOT
            shifts = shifts.repeat_interleave(len(wh_pairs), dim=0)
            wh_pairs = wh_pairs.repeat(height * width, 1)  # ALSO
            default_boxes.append(torch.cat((shifts, wh_pairs), dim=1))  # RAISE # ALSO
        return torch.cat(default_boxes, dim=0)

    def forward(self, feature_maps):
        grid_sizes = [f.shape[-2:] for f in feature_maps]
        dtype, device = feature_maps[0].dtype, feature_maps[0].device
        return self._grid_default_boxes(grid_sizes, dtype, device)  # ALSO


class SSDHead(nn.Module):
    def __init__(self, channels, anchors, classes):
        super().__init__()
        self.columns = 4 + classes
        self.convs = nn.ModuleList(
            [nn.Conv2d(c, a * self.columns, 3, padding=1) for c, a in zip(channels, anchors)]
        )

    def forward(self, features):
        outputs = []
        for conv, feature in zip(self.convs, features):
            outputs.append(conv(feature).permute(0, 2, 3, 1).reshape(len(feature), -1, self.columns))
        return torch.cat(outputs, dim=1)


class SSD(nn.Module):
    def __init__(self, classes=3, width=8):
        super().__init__()
        self.stage1 = nn.Conv2d(3, width, 3, stride=4, padding=1)
        self.stage2 = nn.Conv2d(width, width * 2, 3, stride=2, padding=1)
        self.anchor_generator = DefaultBoxGenerator([[2], [2, 3]], [0.2, 0.5])
        self.head = SSDHead([width, width * 2], self.anchor_generator.num_anchors_per_location(), classes)

    def decode(self, deltas, boxes):
        centers = boxes[:, :2] + deltas[..., :2] * boxes[:, 2:] * 0.1
        sizes = boxes[:, 2:] * torch.exp(deltas[..., 2:] * 0.2)
        return torch.cat([centers - sizes / 2, centers + sizes / 2], dim=-1)

    def forward(self, images):
        first = self.stage1(images).relu()
        features = [first, self.stage2(first).relu()]
        output = self.head(features)
        boxes = self.decode(output[..., :4], self.anchor_generator(features))
        return boxes, output[..., 4:].softmax(-1)


def detect(model, images, device, threshold=0.4):
    with torch.no_grad():
        boxes, scores = model(images.to(device))
    best, labels = scores.max(dim=-1)
    return [(b[s > threshold].cpu(), l[s > threshold].cpu()) for b, s, l in zip(boxes, best, labels)]


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = SSD().to(device).eval()
    for boxes, labels in detect(model, torch.rand(2, 3, 32, 32), device):
        print(len(boxes), labels.unique().tolist())


if __name__ == "__main__":
    main()

# source: qfgaohao/pytorch-ssd#147
# mechanism: a detector takes the GPU for its priors when no device is given, and its predictor moves the network to another device by default
# expect: raises
import math
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class SSDConfig:
    image_size: int = 16
    cells: int = 4
    center_variance: float = 0.1
    size_variance: float = 0.2

    def priors(self):
        step = 1.0 / self.cells
        rows = []
        for j in range(self.cells):
            for i in range(self.cells):
                rows.append([(i + 0.5) * step, (j + 0.5) * step, 2 * step, 2 * step])
        return torch.tensor(rows)


def locations_to_boxes(locations, priors, center_variance, size_variance):
    centers = locations[..., :2] * center_variance * priors[..., 2:] + priors[..., :2]  # RAISE
    sizes = torch.exp(locations[..., 2:] * size_variance) * priors[..., 2:]
    return torch.cat([centers - sizes / 2, centers + sizes / 2], dim=-1)


class SSD(nn.Module):
    def __init__(self, num_classes, config, is_test=False, device=None):
        super().__init__()
        self.config, self.is_test = config, is_test
        if device:
            self.device = torch.device(device)
        else:
            self.device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
        levels = int(math.log2(config.image_size // config.cells))
        layers = [nn.Conv2d(3 if i == 0 else 8, 8, 3, 2, 1) for i in range(levels)]
        self.base = nn.Sequential(*layers)
        self.cls = nn.Conv2d(8, num_classes, 3, padding=1)
        self.reg = nn.Conv2d(8, 4, 3, padding=1)
        if is_test:
            self.priors = config.priors().to(self.device)  # ALSO

    def forward(self, images):
        features = self.base(images)
        scores = self.cls(features).flatten(2).transpose(1, 2)
        locations = self.reg(features).flatten(2).transpose(1, 2)
        if not self.is_test:
            return scores, locations
        variances = self.config.center_variance, self.config.size_variance
        return scores.softmax(-1), locations_to_boxes(locations, self.priors, *variances)  # ALSO


class Predictor:
    def __init__(self, net, threshold=0.2, device=None):
        self.net = net
        self.threshold = threshold
        self.device = torch.device(device or "cpu")  # ALSO
        self.net.to(self.device)
        self.net.eval()

    @torch.no_grad()
    def predict(self, image, top_k=5):
        scores, boxes = self.net(image.unsqueeze(0).to(self.device))
        scores, boxes = scores[0].cpu(), boxes[0].cpu()
        best, labels = scores[:, 1:].max(dim=1)
        keep = best.topk(min(top_k, len(best))).indices
        keep = keep[best[keep] > self.threshold]
        return boxes[keep], labels[keep] + 1, best[keep]


def create_ssd(num_classes, config=None, is_test=False, device=None):
    return SSD(num_classes, config or SSDConfig(), is_test=is_test, device=device)


def create_predictor(net, threshold=0.2, device=None):
    return Predictor(net, threshold=threshold, device=device)


def main():
    net = create_ssd(4, is_test=True)
    predictor = create_predictor(net)  # ROOT
    boxes, labels, probs = predictor.predict(torch.rand(3, 16, 16))
    print(boxes.shape, labels.tolist(), probs.tolist())


if __name__ == "__main__":
    main()

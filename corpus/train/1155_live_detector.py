# source: ultralytics/ultralytics#4556
# mechanism: the predictor that a model makes at its first call keeps the device of that time; after model.to another one it moves images to the old device
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn


class DetectionNetwork(nn.Module):
    def __init__(self, classes=3, width=8):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3, stride=2, padding=1), nn.SiLU())
        self.head = nn.Conv2d(width, 4 + classes, 1)

    def forward(self, images):
        output = self.head(self.stem(images))  # RAISE
        return output.flatten(2).transpose(1, 2)


class Predictor:
    def __init__(self, network, device, conf):
        self.network = network
        self.device = device
        self.conf = conf

    def preprocess(self, images):
        if images.dtype == torch.uint8:
            images = images.float() / 255
        return images.to(self.device)  # ALSO

    def postprocess(self, output):
        boxes, scores = output[..., :4], output[..., 4:].sigmoid()
        best, label = scores.max(dim=-1)
        results = []
        for b, s, c in zip(boxes, best, label):
            keep = s > self.conf
            results.append({"boxes": b[keep].cpu(), "scores": s[keep].cpu(), "labels": c[keep].cpu()})
        return results

    @torch.no_grad()
    def __call__(self, images):
        return self.postprocess(self.network(self.preprocess(images)))


class Detector:
    def __init__(self, classes=3, conf=0.5):
        self.network = DetectionNetwork(classes).eval()
        self.conf = conf
        self.predictor = None

    @property
    def device(self):
        return next(self.network.parameters()).device

    def to(self, device):
        self.network.to(device)  # ROOT
        return self

    def predict(self, images):
        if self.predictor is None:  # ALSO
            self.predictor = Predictor(self.network, self.device, self.conf)
        return self.predictor(images)

    __call__ = predict


class Camera:
    def __init__(self, size=16, seed=0):
        self.gen = torch.Generator().manual_seed(seed)
        self.size = size

    def read(self, count):
        return torch.randint(0, 256, (count, 3, self.size, self.size), generator=self.gen, dtype=torch.uint8)


def summarize(name, results):
    print(name, [len(r["boxes"]) for r in results])


def main():
    torch.manual_seed(0)
    camera = Camera()
    detector = Detector(conf=0.4).to("cuda:0")
    summarize("warmup", detector(camera.read(1)))
    detector.to("cuda:1")
    frames = camera.read(2).to(detector.device)
    summarize("stream", detector(frames))


if __name__ == "__main__":
    main()

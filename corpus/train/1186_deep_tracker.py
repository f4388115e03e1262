# source: erdos-project/pylot#216
# mechanism: a tracker puts its mask on the GPU that was current when it was made, and every frame's crops on the one that is current then
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn
from torch.nn import functional as F


def gaussian_mask(size, sigma=0.5):
    axis = torch.linspace(-1, 1, size)
    line = torch.exp(-axis.pow(2) / (2 * sigma ** 2))
    return line[:, None] * line[None]


class AppearanceEncoder(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.conv = nn.Conv2d(3, dim, 3, stride=2)

    def forward(self, crops):
        return F.normalize(self.conv(crops).relu().mean((2, 3)), dim=1)


class Track:
    def __init__(self, number, feature):
        self.number = number
        self.features = [feature]

    def distance(self, feature):
        return min(1 - float(f @ feature) for f in self.features[-5:])


class DeepSort:
    def __init__(self, crop_size=8, max_distance=0.3):
        self.crop_size = crop_size
        self.max_distance = max_distance
        self.gaussian_mask = gaussian_mask(crop_size).cuda()
        self.encoder = AppearanceEncoder().cuda().eval()
        self.tracks = []

    def pre_process(self, frame, boxes):
        crops = []
        for x1, y1, x2, y2 in boxes:
            crop = frame[None, :, y1:y2, x1:x2]
            crops.append(F.interpolate(crop, size=(self.crop_size, self.crop_size)))
        return torch.cat(crops)

    @torch.no_grad()
    def extract_features(self, frame, boxes):
        processed_crops = self.pre_process(frame, boxes).cuda()  # ROOT
        weighted = self.gaussian_mask * processed_crops  # RAISE # ALSO
        return self.encoder(weighted).cpu()

    def run(self, frame, boxes):
        if not boxes:
            return []
        result = []
        for box, feature in zip(boxes, self.extract_features(frame, boxes)):
            scored = [(track.distance(feature), track) for track in self.tracks]
            best = min(scored, key=lambda item: item[0], default=(1.0, None))
            if best[0] < self.max_distance:
                best[1].features.append(feature)
                result.append((best[1].number, box))
            else:
                self.tracks.append(Track(len(self.tracks), feature))
                result.append((self.tracks[-1].number, box))
        return result


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Conv2d(3, 1, 3, padding=1)

    @torch.no_grad()
    def forward(self, frame):
        heat = self.net(frame[None])[0, 0]
        y, x = divmod(int(heat.flatten().argmax()), heat.shape[1])
        x, y = min(x, heat.shape[1] - 6), min(y, heat.shape[0] - 6)
        return [(x, y, x + 6, y + 6), (2, 2, 10, 10)]


class PerceptionOperator:
    def __init__(self, detector_gpu):
        self.detector_gpu = detector_gpu
        self.detector = Detector().to(torch.device("cuda", detector_gpu))
        self.tracker = DeepSort()  # ALSO

    def on_frame(self, frame):
        with torch.cuda.device(self.detector_gpu):
            frame = frame.cuda()
            boxes = self.detector(frame)
            return self.tracker.run(frame, boxes)


def main():
    torch.manual_seed(0)
    operator = PerceptionOperator(detector_gpu=1)
    for number in range(3):
        tracked = operator.on_frame(torch.rand(3, 16, 16))
        print("frame", number, [track for track, box in tracked])


if __name__ == "__main__":
    main()

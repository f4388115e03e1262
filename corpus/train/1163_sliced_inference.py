# source: kadirnar/Yolov6-SAHI#4
# mechanism: a wrapper moves its model to the chosen device but hands on the preprocessed image slices as they are
# expect: raises
import dataclasses

import torch
from torch import nn


@dataclasses.dataclass
class ObjectPrediction:
    box: list
    score: float
    category: int

    def shifted(self, dx, dy):
        x1, y1, x2, y2 = self.box
        return ObjectPrediction([x1 + dx, y1 + dy, x2 + dx, y2 + dy], self.score, self.category)


class Backbone(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, stride=4, padding=1)
        self.pred = nn.Conv2d(8, 4 + classes, 1)

    def forward(self, x):
        features = self.conv(x).relu()  # RAISE
        return self.pred(features).flatten(2).transpose(1, 2)


class DetectionModel:
    def __init__(self, classes=3, device=None, confidence=0.5, image_size=16):
        self.classes = classes
        self.device = torch.device(device or "cpu")
        self.confidence = confidence
        self.image_size = image_size
        self.model = None
        self.predictions = []

    def load_model(self):
        torch.manual_seed(0)
        self.model = Backbone(self.classes).to(self.device).eval()

    def preprocess(self, image):
        image = image.permute(2, 0, 1).float() / 255  # ALSO
        image = nn.functional.interpolate(image[None], size=(self.image_size, self.image_size))  # ALSO
        return image  # ALSO

    def perform_inference(self, image):
        img = self.preprocess(image)  # ROOT
        with torch.no_grad():
            output = self.model(img)  # ALSO
        self.predictions = self.to_object_predictions(output[0].cpu())

    def to_object_predictions(self, output):
        scores, labels = output[:, 4:].sigmoid().max(dim=1)
        keep = scores > self.confidence
        return [
            ObjectPrediction(box, score, label)
            for box, score, label in zip(output[keep, :4].tolist(), scores[keep].tolist(), labels[keep].tolist())
        ]


def slice_image(image, size, overlap):
    height, width = image.shape[:2]
    step = int(size * (1 - overlap))
    for y in range(0, max(height - size, 0) + 1, step):
        for x in range(0, max(width - size, 0) + 1, step):
            yield x, y, image[y:y + size, x:x + size]


def get_sliced_prediction(image, detection_model, size=16, overlap=0.25):
    results = []
    for x, y, part in slice_image(image, size, overlap):
        detection_model.perform_inference(part)
        results += [p.shifted(x, y) for p in detection_model.predictions]
    return results


def best_by_category(predictions):
    best = {}
    for p in predictions:
        if p.category not in best or best[p.category].score < p.score:
            best[p.category] = p
    return best


def main():
    gen = torch.Generator().manual_seed(6)
    image = torch.randint(0, 256, (40, 40, 3), generator=gen, dtype=torch.uint8)
    model = DetectionModel(device="cuda:0" if torch.cuda.is_available() else "cpu", confidence=0.3)
    model.load_model()
    predictions = get_sliced_prediction(image, model)
    for category, p in sorted(best_by_category(predictions).items()):
        print(category, round(p.score, 3))


if __name__ == "__main__":
    main()

# source: ujsyehao/yolov3-multigpu#13
# mechanism: evaluation asks whether a predicted label on the GPU is among target labels that are still on the CPU
# expect: raises
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class BoxDataset(Dataset):
    def __init__(self, n=6):
        gen = torch.Generator().manual_seed(n)
        self.images = torch.rand(n, 3, 8, 8, generator=gen)
        self.boxes = torch.rand(n, 2, 4, generator=gen) * 4
        self.boxes[..., 2:] += self.boxes[..., :2] + 1
        self.labels = torch.randint(0, 2, (n, 2), generator=gen)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        index = torch.zeros(2, 1)
        return self.images[i], torch.cat([index, self.labels[i, :, None].float(), self.boxes[i]], dim=1)

    @staticmethod
    def collate_fn(batch):
        images, targets = zip(*batch)
        for i, boxes in enumerate(targets):
            boxes[:, 0] = i
        return torch.stack(images), torch.cat(targets, 0)


class GridDetector(nn.Module):
    def __init__(self, anchors=3, classes=2):
        super().__init__()
        self.anchors, self.classes = anchors, classes
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(192, anchors * (4 + classes)))

    def forward(self, x):
        out = self.net(x).view(len(x), self.anchors, -1)
        xy = torch.sigmoid(out[..., :2]) * 4
        boxes = torch.cat([xy, xy + 1 + torch.sigmoid(out[..., 2:4]) * 4], dim=-1)
        scores, labels = torch.softmax(out[..., 4:], dim=-1).max(-1)
        return [torch.cat([b, s[:, None], c[:, None].float()], 1) for b, s, c in zip(boxes, scores, labels)]


def bbox_iou(box, boxes):
    low = torch.max(box[:, :2], boxes[:, :2])
    high = torch.min(box[:, 2:], boxes[:, 2:])
    inter = (high - low).clamp(min=0).prod(1)
    area = lambda b: (b[:, 2:] - b[:, :2]).prod(1)
    return inter / (area(box) + area(boxes) - inter + 1e-9)


def get_batch_statistics(outputs, targets, iou_threshold):
    metrics = []
    for sample_i, output in enumerate(outputs):
        pred_boxes, pred_labels = output[:, :4], output[:, -1]
        annotations = targets[targets[:, 0] == sample_i][:, 1:]  # ALSO
        target_labels = annotations[:, 0]
        hits, detected = [0] * len(pred_boxes), []
        for i, (box, label) in enumerate(zip(pred_boxes, pred_labels)):
            if len(detected) == len(annotations):
                break
            if label not in target_labels:  # RAISE
                continue
            iou, index = bbox_iou(box.unsqueeze(0), annotations[:, 1:]).max(0)
            if iou >= iou_threshold and int(index) not in detected:
                hits[i] = 1
                detected.append(int(index))
        metrics.append((hits, output[:, 4].tolist()))
    return metrics


@torch.no_grad()
def evaluate(model, dataset, device, iou_threshold=0.3):
    model.eval()
    loader = DataLoader(dataset, batch_size=3, collate_fn=dataset.collate_fn)
    metrics = []
    for images, targets in loader:
        outputs = model(images.to(device))  # ROOT
        metrics += get_batch_statistics(outputs, targets, iou_threshold)  # ALSO
    flat = [h for hits, _ in metrics for h in hits]
    return sum(flat) / len(flat)


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = GridDetector().to(device)
    print("precision %.3f" % evaluate(model, BoxDataset(), device))


if __name__ == "__main__":
    main()

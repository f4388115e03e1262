# source: rwightman/efficientdet-pytorch#105
# mechanism: only an image without boxes takes the branch that makes its matches on the CPU
# phase: loss; aten::stack or aten::cat
# expect: raises
import torch

dev = torch.device("cuda", 0)


def match(similarity, threshold):
    if similarity.shape[0] == 0:
        return -torch.ones(similarity.shape[1], dtype=torch.long)  # ROOT
    values, indices = similarity.max(0)
    return torch.where(values > threshold, indices, -1)


def overlaps(boxes, anchors):
    low = torch.maximum(boxes[:, None, :2], anchors[None, :, :2])
    high = torch.minimum(boxes[:, None, 2:], anchors[None, :, 2:])
    return (high - low).clamp(min=0).prod(-1)


def detection_loss(scores, anchors, batch):
    matches = [match(overlaps(boxes, anchors), threshold=0.1) for boxes in batch]
    positive = torch.stack(matches) >= 0  # RAISE
    return torch.nn.functional.binary_cross_entropy_with_logits(scores, positive.float())


def random_boxes(count):
    corner = torch.rand(count, 2, device=dev) * 0.5
    return torch.cat([corner, corner + 0.4], dim=1)


anchors = random_boxes(12)
head = torch.nn.Linear(6, 12).to(dev)
for counts in ([2, 1], [3, 2], [1, 0]):
    scores = head(torch.randn(len(counts), 6, device=dev))
    detection_loss(scores, anchors, [random_boxes(count) for count in counts]).backward()

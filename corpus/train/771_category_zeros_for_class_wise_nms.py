# source: facebookresearch/segment-anything#17, fix PR#41
# mechanism: [factory call without device=] one category for all boxes is made with torch.zeros() and no device; the coordinate-shift path of batched NMS converts it, the class-wise path taken for many boxes does not
# phase: mask post-processing; failing op: aten::index ('indices should be either on cpu or on the same device as the indexed tensor (cpu)')
# expect: raises
import torch

dev = torch.device("cuda", 0)


def nms(boxes, scores):
    order = scores.argsort(descending=True)
    near = torch.cdist(boxes[order], boxes[order]) < 1.0
    return order[~near.triu(1).any(0)]

def batched_nms(boxes, scores, cats):
    if len(boxes) <= 16:
        return nms(boxes + (cats.to(boxes) * (boxes.max() + 1))[:, None], scores)
    mask = torch.zeros_like(scores, dtype=torch.bool)
    for c in cats.unique():
        rows = torch.where(cats == c)[0]  # ALSO
        mask[rows[nms(boxes[rows], scores[rows])]] = True  # RAISE
    return torch.where(mask)[0]

def process_crop(n):
    data = {"boxes": torch.rand(n, 4, device=dev) * 9, "iou": torch.rand(n, device=dev)}
    cats = torch.zeros(len(data["boxes"]))  # ROOT
    keep = batched_nms(data["boxes"], data["iou"], cats)  # ALSO
    return {k: v[keep] for k, v in data.items()}

process_crop(12), process_crop(32)

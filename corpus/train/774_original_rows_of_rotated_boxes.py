# source: lx-cly/YOLOv7_OBB#13; jbwang1997/OBBDetection#207; hukaixuan19970627/yolov5_obb#608
# mechanism: [index tensor] row numbers come from torch.arange() on the CPU and are filtered by a boolean mask computed from CUDA boxes
# phase: validation; failing op: aten::index ('indices should be either on cpu or on the same device as the indexed tensor (cpu)')
# expect: raises
import torch

dev = torch.device("cuda", 0)


def suppress(boxes, scores):
    near = torch.cdist(boxes[:, :2], boxes[:, :2]) < 0.2
    return torch.where(~(near & (scores[:, None] > scores)).any(0))[0]

def rotated_nms(boxes, scores):
    rows = torch.arange(boxes.size(0))  # ROOT
    thin = boxes[:, 2:4].min(1).values < 1e-3
    if thin.all():
        return boxes[:0], rows[:0]
    rows = rows[~thin]  # RAISE
    rows = rows[suppress(boxes[~thin], scores[~thin])]
    return boxes[rows], rows

out = torch.rand(7, 6, device=dev) + 0.1
kept = out[out[:, 5] > 0.1]
rotated_nms(kept[:, :5], kept[:, 5])

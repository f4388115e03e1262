# source: ultralytics/ultralytics PR#22341 (closes #22338)
# mechanism: [cached tensor] anchors and validity mask of the decoder are plain attributes, rebuilt only when the feature shapes change; a first pass on the CPU fills them, Module.to() skips them
# phase: inference, second forward; failing op: aten::mul (cpu mask x cuda memory)
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class DecoderHead(nn.Module):
    def __init__(self, hidden=8, queries=3):
        super().__init__()
        self.queries, self.shapes = queries, []
        self.enc_output = nn.Linear(hidden, hidden)
        self.enc_bbox = nn.Linear(hidden, 4)

    def generate_anchors(self, shapes, device, eps=0.05):
        boxes = []
        for i, (h, w) in enumerate(shapes):
            gy, gx = torch.meshgrid(torch.arange(h, device=device), torch.arange(w, device=device), indexing="ij")
            xy = (torch.stack([gx, gy], -1).float() + 0.5) / torch.tensor([w, h], device=device)
            boxes.append(torch.cat([xy, torch.full_like(xy, 0.05 * 2 ** i)], -1).view(1, h * w, 4))
        boxes = torch.cat(boxes, 1)
        valid = ((boxes > eps) & (boxes < 1 - eps)).all(-1, keepdim=True)
        return torch.log(boxes / (1 - boxes)).masked_fill(~valid, float("inf")), valid

    def forward(self, feats):
        shapes = [f.shape[-2:] for f in feats]
        memory = torch.cat([f.flatten(2).transpose(1, 2) for f in feats], 1)
        if self.shapes != shapes:  # ALSO
            self.anchors, self.valid_mask = self.generate_anchors(shapes, memory.device)  # ROOT
            self.shapes = shapes
        features = self.enc_output(self.valid_mask.to(memory.dtype) * memory)  # RAISE
        top = features.sum(-1).topk(self.queries, dim=1).indices
        return (self.enc_bbox(features) + self.anchors).gather(1, top.unsqueeze(-1).expand(-1, -1, 4)).sigmoid()

head = DecoderHead().eval()
with torch.no_grad():
    feats = [torch.randn(1, 8, s, s) for s in (8, 4)]
    head(feats)
    head = head.to(dev)
    head([f.to(dev) for f in feats])

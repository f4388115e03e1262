# source: ultralytics/ultralytics PR#25201 (AutoBackend.from_numpy moves tensors to self.device as well, not arrays only)
# mechanism: [NumPy round trip] a backend's converter promises its device, but passes a tensor through where it is
# phase: postprocessing; failing op: aten::mm
# expect: raises
# root: autobackend.py:from_numpy: ... if isinstance(x, np.ndarray) else x
import numpy as np
import torch

dev = torch.device('cuda', 0)


class AutoBackend:
    def __init__(self, model, device):
        self.model, self.device = model, device

    def from_numpy(self, x):
        return torch.tensor(x).to(self.device) if isinstance(x, np.ndarray) else x     # ROOT

    def forward(self, im):
        y = self.model(im)
        return [self.from_numpy(v) for v in y]


def traced(im):
    boxes = torch.rand(3, 6)  # ALSO
    protos = im.mean(1).reshape(2, -1)
    return boxes, protos, np.ones(3, dtype=np.float32)


def process_mask(coeffs, protos):
    return (coeffs @ protos).sigmoid() > 0.5           # RAISE


def predict(im):
    boxes, protos, scores = AutoBackend(traced, dev).forward(im.to(dev))
    masks = process_mask(boxes[:, 4:], protos)
    return masks[scores > 0.5]

predict(torch.rand(2, 3, 4, 4))

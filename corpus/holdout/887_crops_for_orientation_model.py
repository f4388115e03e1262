# source: mindee/doctr#1174, #1020, PR#1039
# mechanism: [data not moved] pipeline of two predictors: the detector's moves its batches to the model, the one that classifies the crops by orientation does not
# phase: inference, second stage; failing op: aten::conv2d ('Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be the same')
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class PreProcessor:
    def __init__(self, size):
        self.size = size

    def __call__(self, images):
        return torch.cat([nn.functional.interpolate(i[None], self.size) for i in images]).split(2)

class DetectionPredictor(nn.Module):
    def __init__(self):
        super().__init__()
        self.pre, self.model = PreProcessor((8, 8)), nn.Conv2d(1, 1, 3, padding=1)

    def forward(self, pages):
        maps = torch.cat([self.model(batch.to(self.model.weight.device)) for batch in self.pre(pages)])
        return [int(m.flatten().argmax()) % 4 for m in maps.cpu()]

class OrientationPredictor(nn.Module):
    def __init__(self):
        super().__init__()
        self.pre, self.model = PreProcessor((6, 6)), nn.Conv2d(1, 4, 3)

    def forward(self, crops):
        batches = self.pre(crops)  # ROOT
        predicted = [self.model(batch) for batch in batches]  # RAISE  # ALSO
        return torch.cat(predicted).mean((2, 3)).argmax(1).tolist()

def read(pages, det, orientation):
    crops = [p[:, a:a + 4, a:a + 4] for p, a in zip(pages, det(pages))]
    return [c.rot90(k, (1, 2)) for c, k in zip(crops, orientation(crops))]

pages = [torch.rand(1, 8, 8) for _ in range(3)]
read(pages, DetectionPredictor().to(dev), OrientationPredictor().to(dev))

# source: neuro-ml/thunder#49, samet-akcay/ganomaly#26
# mechanism: scores are collected on the GPU and labels on the host, and NumPy is given both when the loop is over
# phase: evaluation; Tensor.__array__
# expect: raises
import numpy as np
import torch
from torch import nn


def area_under_curve(scores, labels):
    order = np.argsort(np.array(scores))  # RAISE  # ALSO
    return float(np.array(labels)[order].mean())


class Evaluation:
    def __init__(self, model):
        self.model = model
        self.scores = []
        self.labels = []

    def run(self, batches):
        for x, y in batches:
            chances = torch.sigmoid(self.model(x.cuda()).squeeze(-1)).detach()  # ALSO
            self.scores.append(chances)  # ROOT
            self.labels.append(y.detach().cpu())
        return area_under_curve(torch.cat(self.scores), torch.cat(self.labels))  # ALSO


evaluation = Evaluation(nn.Linear(4, 1).cuda())
evaluation.run([(torch.rand(5, 4), torch.rand(5)) for _ in range(3)])

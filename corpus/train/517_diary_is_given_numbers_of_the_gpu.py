# source: https://github.com/gd2016229035/faster-rcnn-rgbd/issues/6
# mechanism: what a step returns is handed to a log as it is, a number on the GPU, and the log asks NumPy for the mean
# phase: end of the epoch; Tensor.numpy
# expect: raises
from collections import defaultdict

import numpy as np
import torch
from torch import nn


class Diary:
    def __init__(self):
        self.pages = defaultdict(list)

    def note(self, name, value):
        self.pages[name].append(value)  # ALSO

    def means(self):
        return {name: float(np.mean(values)) for name, values in self.pages.items()}  # RAISE  # ALSO


class Training:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

    def step(self, rows, wanted):
        loss = nn.functional.smooth_l1_loss(self.model(rows), wanted)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()  # ALSO

    def epoch(self, batches, diary):
        for rows, wanted in batches:
            diary.note("size", len(rows))
            loss = self.step(rows.cuda(), wanted.cuda())  # ALSO
            diary.note("loss", loss)  # ROOT


diary = Diary()
training = Training(nn.Linear(3, 1).cuda())
training.epoch([(torch.randn(4, 3), torch.randn(4, 1)) for _ in range(3)], diary)
print(diary.means())

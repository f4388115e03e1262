# source: lijx10/SO-Net#41
# mechanism: [tensor kept where a number is meant] one of the reported errors is left a CUDA 0-dim tensor (the others are .item()); the plotter stores it and makes an array of it later
# phase: logging; failing op: Tensor.__array__ ("can't convert cuda:0 device type tensor to numpy")
# expect: raises
import numpy as np
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class Model:
    def __init__(self):
        self.segmenter = nn.Conv1d(3, 5, 1).to(dev)
        self.optimizer = torch.optim.Adam(self.segmenter.parameters(), lr=1e-3)

    def optimize(self, pc, seg):
        self.seg, self.score = seg.to(dev), self.segmenter(pc.to(dev))
        self.loss = nn.functional.cross_entropy(self.score, self.seg)
        self.optimizer.zero_grad()
        self.loss.backward()
        self.optimizer.step()

    def get_current_errors(self):
        predicted = self.score.detach().max(dim=1)[1]
        accuracy = torch.eq(predicted, self.seg).float().mean()  # ALSO
        errors = {"train_loss_seg": self.loss.item()}
        errors["train_accuracy_seg"] = accuracy  # ROOT
        return errors


class Visualizer:
    def __init__(self):
        self.plot_data = {"X": [], "Y": []}

    def plot_current_errors(self, epoch, ratio, errors):
        self.plot_data["X"].append(epoch + ratio)
        self.plot_data["Y"].append(list(errors.values()))  # ALSO
        return np.array(self.plot_data["X"]), np.array(self.plot_data["Y"])  # RAISE

model, visualizer = Model(), Visualizer()
for i in range(3):
    model.optimize(torch.randn(2, 3, 16), torch.randint(0, 5, (2, 16)))
    visualizer.plot_current_errors(0, i / 3, model.get_current_errors())

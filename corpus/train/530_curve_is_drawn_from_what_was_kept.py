# source: https://github.com/PINA-org/PINA/issues/219
# mechanism: a callback is given the loss of a step as it is, keeps it, and makes an array of what it kept for drawing
# phase: drawing; Tensor.numpy
# expect: raises
import numpy as np
import torch
from torch import nn


class Tracker:
    def __init__(self):
        self.kept = []

    def after_step(self, name, value):
        self.kept.append((name, value))  # ALSO

    def curve(self, name):
        values = [value for kept, value in self.kept if kept == name]  # ALSO
        return np.asarray(values, dtype=np.float32)  # RAISE


class Solver:
    def __init__(self, net, trackers):
        self.net, self.trackers = net, trackers

    def residual(self, points):
        points = points.requires_grad_()
        (slope,) = torch.autograd.grad(self.net(points).sum(), points, create_graph=True)
        return (slope - 1).square().mean()

    def solve(self, steps):
        optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        for _ in range(steps):
            residual = self.residual(torch.rand(5, 1, device="cuda"))
            optimizer.zero_grad()
            residual.backward()
            optimizer.step()
            for tracker in self.trackers:
                tracker.after_step("residual", residual.detach())  # ROOT


tracker = Tracker()
Solver(nn.Sequential(nn.Linear(1, 4), nn.Tanh(), nn.Linear(4, 1)).cuda(), [tracker]).solve(2)
print(tracker.curve("residual").min())

# source: own
# mechanism: a bundle that was saved on a machine without a GPU holds a scaler, which goes on making its tensors where it remembers
# phase: prediction; failing op: aten::sub
# expect: raises
import io
import pickle

import torch
from torch import nn


class Scaler:
    def __init__(self, device):
        self.device, self.values = device, []

    def fit(self, rows):
        self.values = rows.mean(0).tolist()
        return self

    def __call__(self, rows):
        return rows - torch.tensor(self.values, device=self.device)  # RAISE  # ALSO


class Predictor:
    def __init__(self, device):
        self.device = device
        self.scaler, self.net = Scaler(device), nn.Linear(3, 1).to(device)

    def restore(self, file):
        bundle = pickle.load(file)  # ROOT
        self.scaler = bundle["scaler"]  # ALSO
        return self

    def predict(self, rows):
        return self.net(self.scaler(rows.to(self.device)))


file = io.BytesIO(pickle.dumps({"scaler": Scaler("cpu").fit(torch.randn(6, 3)), "version": 2}))
Predictor("cuda:0").restore(file).predict(torch.randn(4, 3))

# source: JDAI-CV/fast-reid#509
# mechanism: a predictor moves its model and its inputs; the table that it compares them with stays as it was handed in
# phase: inference; matmul
# expect: raises
import torch
import torch.nn.functional as F
from torch import nn


class Predictor:
    def __init__(self, model, sheets, names, device):
        self.device = device
        self.model = model.to(device).eval()
        self.sheets = sheets  # ROOT
        self.names = names

    @torch.no_grad()
    def __call__(self, photo):
        features = self.model(photo.to(self.device))
        features = F.normalize(features, dim=-1)
        nearest = (features @ self.sheets.t()).argmax(-1)  # RAISE  # ALSO
        return [self.names[i] for i in nearest.tolist()]


class Demo:
    def __init__(self, device):
        model = nn.Sequential(nn.Flatten(), nn.Linear(48, 8))
        names = ["fern", "moss", "sedge"]
        sheets = F.normalize(torch.randn(len(names), 8), dim=-1)  # ALSO
        self.predictor = Predictor(model, sheets, names, device)  # ALSO

    def run_on_photo(self, photo):
        photo = photo.float().div(255).unsqueeze(0)
        return self.predictor(photo)


demo = Demo("cuda:0")
for photo in torch.randint(256, (3, 3, 4, 4)):
    print(demo.run_on_photo(photo))

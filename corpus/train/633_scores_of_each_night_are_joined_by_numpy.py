# source: zhykoties/TimeSeries#37
# mechanism: results are put into a list as they come from the accelerator; NumPy is given the list
# phase: evaluation; Tensor.__array__
# expect: raises
import numpy as np
import torch
from torch import nn


class Nights:
    def __init__(self, model):
        self.model, self.scores = model, {"rise": [], "fall": []}

    @torch.no_grad()
    def see(self, light):
        rise, fall = self.model(light.to("cuda:0")).unbind(-1)  # ALSO
        self.scores["rise"].append(rise.max().item())
        self.scores["fall"].append(fall)  # ROOT

    def report(self):
        rise = np.array(self.scores["rise"])
        fall = np.concatenate(self.scores["fall"])  # RAISE  # ALSO
        return rise.mean(), fall.mean()


nights = Nights(nn.Linear(5, 2).to("cuda:0"))
for light in torch.rand(3, 4, 5):
    nights.see(light)
nights.report()

# source: none; the shape of pipelines of diffusers whose weights rest on the host between two calls
# mechanism: a model is brought over for each call and parked again; what it begins with is made where the weights are at that moment
# phase: sampling; aten::lerp
# expect: raises
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Painter:
    def __init__(self, net, steps):
        self.net = net
        self.steps = steps

    @property
    def device(self):
        return next(self.net.parameters()).device  # ALSO

    def guess(self, canvas):
        self.net.to(device)
        drawn = self.net(canvas.to(device))
        self.net.to("cpu")
        return drawn

    @torch.no_grad()
    def paint(self, count):
        place = self.device  # ROOT
        canvas = torch.rand(count, 3, 6, 6, device=place)  # ALSO
        for step in range(self.steps):
            canvas = torch.lerp(canvas, self.guess(canvas), 1 / (step + 1))  # RAISE
        return canvas


painter = Painter(nn.Conv2d(3, 3, 3, padding=1), steps=3)
print(painter.paint(2).shape)

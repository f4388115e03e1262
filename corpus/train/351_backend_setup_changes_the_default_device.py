# source: https://github.com/esa/torchquad/issues/157
# mechanism: the set-up of an integrator makes the GPU the default device of the program; the augmentation of a data set on the host draws there from then on
# phase: data; aten::add
# expect: raises
import torch
from torch.utils.data import DataLoader, Dataset


class Curves(Dataset):
    def __init__(self, count, points):
        phase = torch.linspace(0, 3, count)
        self.curves = torch.sin(phase[:, None] + torch.linspace(0, 6, points))
        self.areas = self.curves.mean(1, keepdim=True)

    def __len__(self):
        return len(self.curves)

    def __getitem__(self, index):
        curve = self.curves[index]
        noise = torch.randn(len(curve)).mul(0.01)  # ALSO
        return curve + noise, self.areas[index]  # RAISE


class Integrator:
    def __init__(self, points, accelerate=True):
        if accelerate:
            torch.set_default_device("cuda")  # ROOT
        self.nodes = torch.linspace(0, 1, points)
        self.weights = torch.full((points,), 1 / points)

    def integrate(self, function):
        return (self.weights * function(self.nodes)).sum()


def fit(data, epochs):
    integrator = Integrator(points=16)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(epochs):
        for curves, areas in DataLoader(data, batch_size=4):
            smooth = integrator.integrate(lambda at: at.square())
            loss = (model(curves.to("cuda")) - areas.to("cuda")).square().mean() + 0.01 * smooth
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


fit(Curves(count=12, points=8), epochs=2)

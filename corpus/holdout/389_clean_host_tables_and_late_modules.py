# source: none
# mechanism: a table on the host that is brought back, an adapter that is moved with its model once more, both branches on one device
# phase: none
# expect: clean
import random
import torch
from torch import nn

PLACE = "cuda" if torch.cuda.is_available() else "cpu"


class Table:
    def __init__(self, rows, width):
        self.rows = torch.zeros(rows, width)

    def put(self, row, value):
        self.rows[row] = value.detach().cpu()

    def get(self, row, place):
        return self.rows[row].to(place)


def draw(model, x, explore):
    if random.random() < explore:
        return torch.randint(2, (1,), device=x.device)
    return model(x).argmax(-1, keepdim=True)


class Wrapped(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner, self.gate = inner, nn.Parameter(torch.ones(1))

    def forward(self, x):
        return self.inner(x) * self.gate


def main():
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2)).to(PLACE)
    model[0] = Wrapped(model[0])
    model.to(PLACE)
    table = Table(2, 2)
    for row in range(2):
        table.put(row, model(torch.rand(3, device=PLACE)))
    print((table.get(0, PLACE) + model(torch.rand(3, device=PLACE))).sum().item())
    drawn = [draw(model, torch.rand(3, device=PLACE), 0.5) for _ in range(8)]
    print(torch.cat(drawn).sum().item())
    mask = torch.arange(4, device="cpu") < torch.tensor([[2], [3]])
    print(mask.sum().item())


main()

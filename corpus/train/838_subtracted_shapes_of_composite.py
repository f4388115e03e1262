# source: mkofler96/DeepSDFStruct#78
# mechanism: [module list not registered] first operand of a composite is an attribute and moves, the variable number of further operands is collected into a plain list and does not
# phase: forward; failing op: aten::sub (cuda queries, cpu centre)
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class Circle(nn.Module):
    def __init__(self, center, radius):
        super().__init__()
        self.center = nn.Parameter(torch.tensor(center))
        self.radius = nn.Parameter(torch.tensor([radius]))

    def forward(self, queries):
        return (queries - self.center).norm(dim=1) - self.radius  # RAISE


class Difference(nn.Module):
    def __init__(self, base, *others):
        super().__init__()
        self.base_obj = base
        self.other_objs = list(others)  # ROOT

    def forward(self, queries):
        value = self.base_obj(queries)
        for obj in self.other_objs:
            value = torch.maximum(value, -obj(queries))
        return value


shape = Difference(Circle((0.0, 0.0), 1.0), Circle((0.3, 0.0), 0.4), Circle((-0.3, 0.1), 0.2)).to(dev)
grid = torch.linspace(-1, 1, 5, device=dev)
shape(torch.cartesian_prod(grid, grid)).abs().mean().backward()

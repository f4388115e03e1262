# source: pytorch forum, knowledge distillation with a projection layer
# mechanism: a helper moves the modules that it is given; the layer that a loss keeps is not among them
# phase: forward; aten::linear
# expect: raises
import torch
from torch import nn


def put_on(device, *modules):
    for module in modules:
        module.to(device)


class Distillation(nn.Module):
    def __init__(self, teacher, student, project):
        super().__init__()
        self.teacher, self.student, self.project = teacher, student, project

    def forward(self, x):
        with torch.no_grad():
            wanted = self.teacher(x)
        hidden = self.student(x)
        return (self.project(hidden) - wanted).pow(2).mean()  # RAISE


def main():
    teacher, student = nn.Linear(8, 16), nn.Linear(8, 4)
    project = nn.Linear(4, 16)  # ALSO
    loss = Distillation(teacher, student, project)  # ALSO
    put_on("cuda", teacher, student)  # ROOT
    loss(torch.rand(2, 8, device="cuda")).backward()


main()

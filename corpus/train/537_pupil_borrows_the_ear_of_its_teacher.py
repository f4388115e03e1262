# source: a variation of 316: several attributes in one line, under other names
# mechanism: a pupil takes over its teacher's ear in one line with other things, under another name, and goes to the CPU
# phase: lesson; failing op: aten::addmm
# expect: raises
import torch
from torch import nn

dev = torch.device("cuda", 0)


class Teacher(nn.Module):
    def __init__(self):
        super().__init__()
        self.ear = nn.Sequential(nn.Linear(6, 4), nn.Sigmoid())
        self.voice = nn.Linear(4, 2)

    def forward(self, sound):
        return self.voice(self.ear(sound))  # RAISE


class Pupil(nn.Module):
    def __init__(self, teacher, patience):
        super().__init__()
        self.voice = nn.Linear(4, 2)
        self.hearing, self.patience = teacher.ear, patience  # ROOT

    def forward(self, sound):
        return self.voice(self.hearing(sound))


teacher = Teacher().to(dev)
pupil = Pupil(teacher, patience=3).to("cpu")  # ALSO
sound = torch.randn(2, 6)
(teacher(sound.to(dev)) - pupil(sound).to(dev)).square().mean().backward()

"""accelerate prepares the student, and not the teacher."""
import torch
from accelerate import Accelerator
from torch import nn

accelerator = Accelerator()
student = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
teacher = nn.Linear(4, 2)  # ROOT
optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
student, optimizer = accelerator.prepare(student, optimizer)
x = torch.randn(4, 4, device=accelerator.device)
with torch.no_grad():
    target = teacher(x)
accelerator.backward(((student(x) - target) ** 2).mean())

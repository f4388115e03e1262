# source: https://discuss.pytorch.org/t/knowledge-distillation-with-teacher-and-student-on-different-gpus/137541
# mechanism: the teacher has a GPU of its own and its helper takes the batch there; its answer comes back on that GPU
# phase: loss; aten::kl_div
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn
from torch.nn import functional

student_device, teacher_device = torch.device("cuda", 0), torch.device("cuda", 1)


class Teacher:
    def __init__(self, network, device):
        self.network, self.device = network.to(device).eval(), device

    @torch.no_grad()
    def soften(self, x, temperature):
        x = x.to(self.device)
        x = x / x.norm(dim=-1, keepdim=True)
        return (self.network(x) / temperature).softmax(-1)


def distillation(student, teacher, x, temperature=2.0):
    target = teacher.soften(x, temperature)  # ROOT
    answer = (student(x) / temperature).log_softmax(-1)
    return difference(answer, target) * temperature**2  # ALSO


def difference(answer, target):
    return functional.kl_div(answer, target, reduction="batchmean")  # RAISE  # ALSO


student = nn.Linear(6, 3).to(student_device)
teacher = Teacher(nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3)), teacher_device)
for _ in range(3):
    distillation(student, teacher, torch.randn(8, 6, device=student_device)).backward()

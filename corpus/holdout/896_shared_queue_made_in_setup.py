# source: galilai-group/stable-pretraining#379
# mechanism: [module never moved] callback's setup() makes the queue module and hangs it into a model that is already on its device; appending copies across devices, so only reading it back fails
# phase: training forward once the queue is filled; failing op: aten::mm
# expect: raises
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device("cuda", 0)


class OrderedQueue(nn.Module):
    def __init__(self, length, width):
        super().__init__()
        self.register_buffer("out", torch.zeros(length, width))
        self.pointer = 0

    def append(self, items):
        self.out[self.pointer:self.pointer + len(items)] = items
        self.pointer += len(items)

class OnlineQueue:
    shared = {}
    def setup(self, module, key, length, width):
        if key not in self.shared:
            self.shared[key] = OrderedQueue(length, width)  # ROOT
        module.callbacks_modules[key] = self.shared[key]  # ALSO

class NNCLR(nn.Module):
    def __init__(self):
        super().__init__()
        self.projector, self.callbacks_modules = nn.Linear(3, 4), nn.ModuleDict()

    def forward(self, x):
        proj, queue = F.normalize(self.projector(x), dim=1), self.callbacks_modules["support"]
        if queue.pointer:
            near = torch.mm(proj, queue.out[:queue.pointer].t()).argmax(1)  # RAISE
            proj = (proj + queue.out[near]) / 2
        return proj

model = NNCLR().to(dev)
OnlineQueue().setup(model, "support", 12, 4)  # ALSO
for _ in range(3):
    OnlineQueue.shared["support"].append(model(torch.randn(4, 3, device=dev)).detach())

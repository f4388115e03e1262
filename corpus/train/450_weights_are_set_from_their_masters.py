# source: hpcaitech/ColossalAI#664
# mechanism: an optimizer steps on copies in host memory and hands the copies themselves to the parameters
# phase: second forward; aten::linear
# expect: raises
import torch
from torch import nn


class HostStepper:
    """Steps on the CPU, so that the state of Adam takes no memory of the GPU."""

    def __init__(self, model, **options):
        self.live = [p for p in model.parameters() if p.requires_grad]
        self.masters = [nn.Parameter(p.detach().float().cpu().clone()) for p in self.live]
        self.inner = torch.optim.AdamW(self.masters, **options)

    def zero_grad(self):
        for p in self.live:
            p.grad = None

    def pull_gradients(self):
        for p, master in zip(self.live, self.masters):
            master.grad = None if p.grad is None else p.grad.float().cpu()

    def push_weights(self):
        for p, master in zip(self.live, self.masters):
            p.data = master.detach().to(p.dtype)  # ROOT

    def step(self):
        self.pull_gradients()
        self.inner.step()
        self.push_weights()


def copy_task(count, length, symbols):
    symbols_in = torch.randint(symbols, (count, length), device="cuda")
    return symbols_in, symbols_in.flip(1)


class Reverser(nn.Module):
    def __init__(self, symbols=6, length=5, width=24):
        super().__init__()
        self.symbols, self.length = symbols, length
        self.down = nn.Linear(symbols * length, width)
        self.up = nn.Linear(width, symbols * length)

    def forward(self, ids):
        flat = nn.functional.one_hot(ids, self.symbols).to(torch.float32).flatten(1)
        hidden = torch.relu(self.down(flat))  # RAISE
        return self.up(hidden).unflatten(1, (self.length, self.symbols))


reverser = Reverser().cuda()
stepper = HostStepper(reverser, lr=1e-2, weight_decay=0.0)
for _ in range(3):
    given, wanted = copy_task(count=8, length=5, symbols=6)
    stepper.zero_grad()
    nn.functional.cross_entropy(reverser(given).flatten(0, 1), wanted.flatten()).backward()
    stepper.step()

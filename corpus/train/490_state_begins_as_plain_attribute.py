# source: own; recurrent policies that begin every episode with the same state
# mechanism: the state is moved with its module, what it begins with is a plain attribute
# phase: second episode; failing op: aten::add.Tensor
# expect: raises
import torch
import torch.nn as nn

device = torch.device("cuda", 0)


class Policy(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mix = nn.Linear(width, width)
        self.initial = torch.zeros(width)  # ROOT
        self.register_buffer("state", torch.zeros(width))

    def begin(self):
        self.state = self.initial.clone()  # ALSO

    def forward(self, seen):
        self.state = torch.tanh(self.mix(seen).mean(0) + self.state)  # RAISE
        return self.state.argmax()


policy = Policy(4).to(device)
for episode in range(2):
    for _ in range(3):
        policy(torch.randn(5, 4, device=device))
    policy.begin()

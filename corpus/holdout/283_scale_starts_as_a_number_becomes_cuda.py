# source: Intelligent-Driving-Laboratory/GOPS PR#43
# mechanism: a running scale starts as a Python float; the first update makes it a 0-dim CUDA tensor
# phase: data; aten::div (cpu 1-D by cuda 0-d)
# expect: raises
import torch

dev = torch.device("cuda", 0)


class Critic(torch.nn.Module):
    def __init__(self, observed):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(observed, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
        self.spread = 1.0

    def forward(self, x):
        return self.net(x).squeeze(-1)

    def observe(self, values):
        self.spread = 0.9 * self.spread + 0.1 * values.detach().std()  # ROOT


class Replay:
    def __init__(self, size, observed):
        self.x, self.wanted = torch.randn(size, observed), torch.randn(size)
        self.priorities = torch.ones(size)

    def sample(self, count):
        return self.priorities.multinomial(count)

    def prioritize(self, rows, errors, spread):
        self.priorities[rows] = errors / spread + 1e-3  # RAISE  # ALSO


critic, replay = Critic(3).to(dev), Replay(32, 3)
optimizer = torch.optim.Adam(critic.parameters())
for step in range(3):
    rows = replay.sample(8)
    values = critic(replay.x[rows].to(dev))
    error = values - replay.wanted[rows].to(dev)
    optimizer.zero_grad()
    error.pow(2).mean().backward()
    optimizer.step()
    replay.prioritize(rows, error.detach().abs().cpu(), critic.spread)  # ALSO
    critic.observe(values)

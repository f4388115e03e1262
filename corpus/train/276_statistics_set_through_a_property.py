# source: NeuracoreAI/neuracore PR#135, huggingface/lerobot PR#1795
# mechanism: a mixin's setter keeps the data's mean and deviation as plain tensors, after or before any move
# phase: forward; aten::sub
# expect: raises
import torch

dev = torch.device("cuda", 0)


class NormalizesInputs:
    _mean = _deviation = None

    @property
    def statistics(self):
        return self._mean, self._deviation

    @statistics.setter
    def statistics(self, values):
        mean, deviation = values
        self._mean = torch.as_tensor(mean, dtype=torch.float32)  # ROOT
        self._deviation = torch.as_tensor(deviation, dtype=torch.float32)

    def normalize(self, x):
        return (x - self._mean) / self._deviation  # RAISE  # ALSO


class Policy(NormalizesInputs, torch.nn.Module):
    def __init__(self, observed, actions):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(observed, 8), torch.nn.Tanh(), torch.nn.Linear(8, actions))

    def forward(self, observation):
        return self.net(self.normalize(observation))


def collect(episodes):
    return torch.randn(episodes, 3) * 2 + 1


data = collect(16)
policy = Policy(observed=3, actions=2)
policy.statistics = data.mean(0).tolist(), data.std(0).tolist()  # ALSO
policy.to(dev)
optimizer = torch.optim.Adam(policy.parameters())
for batch in data.split(8):
    optimizer.zero_grad()
    policy(batch.to(dev)).pow(2).mean().backward()
    optimizer.step()

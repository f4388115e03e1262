# source: https://github.com/LucasAlegre/morl-baselines/issues/153
# mechanism: a network is built with positional arguments and the device lands in the one before it, so that the network stays on its default device
# phase: forward; aten::linear
# expect: raises
import torch

device = "cuda"


class Critic(torch.nn.Module):
    def __init__(self, observations, actions, width=16, tag="critic", device="cpu"):
        super().__init__()
        self.tag = str(tag)
        self.body = torch.nn.Linear(observations + actions, width)
        self.value = torch.nn.Linear(width, 1)
        self.to(device)

    def forward(self, observation, action):
        hidden = self.body(torch.cat([observation, action], 1)).relu()  # RAISE
        return self.value(hidden)


def build(width):
    online = Critic(4, 2, width, tag="online", device=device)
    target = Critic(4, 2, width, device)  # ROOT
    target.load_state_dict(online.state_dict())
    return online, target


online, target = build(8)
observation, action = torch.randn(3, 4, device=device), torch.randn(3, 2, device=device)
for _ in range(2):
    value = online(observation, action)
    with torch.no_grad():
        goal = 0.9 * target(observation, action)
    (value - goal).square().mean().backward()

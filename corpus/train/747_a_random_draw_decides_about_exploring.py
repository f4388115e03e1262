# source: ray-project/ray#60363 (one-line fix in PR#66198)
# mechanism: [factory call without device=] the uniform draw of epsilon-greedy is made on the CPU, both candidate action tensors live on the policy's GPU; torch.where takes no CPU mask of more than one element
# phase: environment rollout (exploration forward); failing op: aten::where
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class EpsilonSchedule:
    def __init__(self, start, end, steps):
        self.start, self.end, self.steps = start, end, steps

    def at(self, t):
        frac = min(t / self.steps, 1.0)
        return self.start + frac * (self.end - self.start)


class DQNModule(nn.Module):
    def __init__(self, obs_dim, n_actions):
        super().__init__()
        self.qf = nn.Sequential(nn.Linear(obs_dim, 16), nn.ReLU(), nn.Linear(16, n_actions))
        self.schedule = EpsilonSchedule(1.0, 0.05, 1000)

    def forward_exploration(self, obs, t):
        q = self.qf(obs)
        greedy = q.argmax(dim=-1)
        B, epsilon = greedy.shape[0], self.schedule.at(t)
        uniform = torch.nan_to_num(q).abs().ge(0).float()
        random_actions = torch.multinomial(uniform, num_samples=1).squeeze(1)
        return torch.where(  # RAISE
            torch.rand((B,)) < epsilon,  # ROOT
            random_actions,
            greedy,
        )


module = DQNModule(4, 3).to(dev)
obs = torch.randn(6, 4, device=dev)
for t in range(3):
    with torch.no_grad():
        actions = module.forward_exploration(obs, t)

# source: DLR-RM/stable-baselines3#111, fix PR#141
# mechanism: [module partly moved] policy takes a device= argument and hands it to its feature network only; the action head made beside it stays where nn.Linear put it
# phase: first prediction of a policy that was built directly, without an algorithm that would move it; failing op: aten::linear / addmm
# expect: raises
import numpy as np
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class MlpExtractor(nn.Module):
    def __init__(self, features, width, device):
        super().__init__()
        self.shared_net = nn.Sequential(nn.Linear(features, width), nn.Tanh()).to(device)

    def forward(self, features):
        return self.shared_net(features)

class ActorCriticPolicy(nn.Module):
    def __init__(self, observation_size, actions, device="cpu"):
        super().__init__()
        self.device = torch.device(device)
        self._build(observation_size, actions, width=16)  # ALSO

    def _build(self, observation_size, actions, width):
        self.mlp_extractor = MlpExtractor(observation_size, width, device=self.device)
        self.action_net = nn.Linear(width, actions)  # ROOT

    def _predict(self, observation, deterministic):
        logits = self.action_net(self.mlp_extractor(observation))  # RAISE
        return logits.argmax(1) if deterministic else torch.distributions.Categorical(logits=logits).sample()

    def predict(self, observation, deterministic=False):
        observation = torch.as_tensor(observation, dtype=torch.float32).to(self.device)
        with torch.no_grad():
            return self._predict(observation[None], deterministic).cpu().numpy()

policy = ActorCriticPolicy(4, 2, device=dev)
policy.predict(np.zeros(4))

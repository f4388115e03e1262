# source: NVIDIA/Isaac-GR00T#280, PR#294
# mechanism: [module never moved] policy loads its model, moves it, and only then finds that the action head has the wrong horizon; the new head copies the old one's weights, but not its device
# phase: inference; failing op: aten::linear / addmm (cuda input, cpu weight)
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class ActionHead(nn.Module):
    def __init__(self, horizon):
        super().__init__()
        self.horizon = horizon
        self.state_encoder = nn.Linear(4, 8)
        self.decoder = nn.Linear(8, 2)

    def forward(self, features):
        h = self.state_encoder(features).relu()  # RAISE
        return self.decoder(h).unsqueeze(1).expand(-1, self.horizon, -1)


class Robot(nn.Module):
    def __init__(self, horizon=16):
        super().__init__()
        self.backbone = nn.Linear(6, 4)
        self.action_head = ActionHead(horizon)

    def forward(self, obs):
        return self.action_head(self.backbone(obs))


class Policy:
    def __init__(self, delta_indices, device):
        self.horizon, self.device = len(delta_indices), device
        self._load_model()

    def _load_model(self):
        model = Robot().eval()
        model.to(device=self.device)  # ALSO
        if model.action_head.horizon != self.horizon:
            head = ActionHead(self.horizon)  # ROOT
            head.load_state_dict(model.action_head.state_dict())
            model.action_head = head.eval()  # ALSO
        self.model = model  # ALSO


policy = Policy(range(8), dev)
policy.model(torch.randn(1, 6, device=dev))

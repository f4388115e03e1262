# source: ray-project/ray PR#22738
# mechanism: [wrong replica] policy keeps the target network it was built with on the CPU and one copy of it for each device tower; the loss reaches for the original
# phase: loss; failing op: aten::linear / addmm
# expect: raises
# needs: 2 GPUs
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device("cuda", 0)


class QModel(nn.Module):
    def __init__(self, features, documents):
        super().__init__()
        self.hidden = nn.Linear(features, 8)
        self.head = nn.Linear(8, documents)

    def forward(self, obs):
        return self.head(self.hidden(obs).relu())  # RAISE

class Policy:
    def __init__(self, make_model, devices, loss_fn):
        model, self.target_model = make_model(), make_model()
        self.target_model.load_state_dict(model.state_dict())
        self.towers = [copy.deepcopy(model).to(d) for d in devices]
        self.target_models = {m: copy.deepcopy(self.target_model).to(d) for m, d in zip(self.towers, devices)}
        self.devices, self.loss_fn = devices, loss_fn

    def learn_on_batch(self, batch):
        for model, device in zip(self.towers, self.devices):
            shard = {key: value.to(device) for key, value in batch.items()}
            self.loss_fn(self, model, shard).backward()

def slate_loss(policy, model, batch):
    q_values = model(batch["obs"]).gather(1, batch["clicked"][:, None]).squeeze(1)
    with torch.no_grad():
        next_q = policy.target_model(batch["new_obs"]).max(1).values  # ROOT
    return F.smooth_l1_loss(q_values, batch["rewards"] + 0.9 * next_q)

policy = Policy(lambda: QModel(5, 3), [dev, torch.device("cuda", 1)], slate_loss)
policy.learn_on_batch({"obs": torch.randn(6, 5), "new_obs": torch.randn(6, 5), "clicked": torch.randint(0, 3, (6,)), "rewards": torch.rand(6)})

# source: APPFL/APPFL#150
# mechanism: the client perturbs its model's parameters, which are on the GPU, with Laplace noise sampled on the CPU
# expect: raises
import copy
from collections import OrderedDict
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class FedConfig:
    device: str = "cuda"
    clients: int = 2
    rounds: int = 2
    local_steps: int = 2
    lr: float = 0.05
    clip_value: float = 1.0
    use_dp: bool = False
    epsilon: float = 10.0


class Classifier(nn.Module):
    def __init__(self, features=6, classes=3):
        super().__init__()
        self.fc1 = nn.Linear(features, 12)
        self.fc2 = nn.Linear(12, classes)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


class BaseClient:
    def __init__(self, cid, cfg, model, data):
        self.cid, self.cfg, self.data = cid, cfg, data
        self.model = copy.deepcopy(model)
        self.primal_state = OrderedDict()

    def load(self, state):
        self.model.load_state_dict(state)
        self.model.to(self.cfg.device)

    def sensitivity(self):
        return 2.0 * self.cfg.clip_value * self.cfg.lr

    def laplace_mechanism_output_perturb(self, scale_value):
        for name, param in self.model.named_parameters():
            mean = torch.zeros(param.shape)  # ROOT
            scale = torch.full_like(mean, scale_value)
            noise = torch.distributions.Laplace(mean, scale).sample()  # ALSO
            self.primal_state[name] = param.detach() + noise  # RAISE # ALSO


class ClientOptim(BaseClient):
    def update(self):
        inputs, labels = (t.to(self.cfg.device) for t in self.data)
        optimizer = torch.optim.SGD(self.model.parameters(), lr=self.cfg.lr)
        self.model.train()
        for _ in range(self.cfg.local_steps):
            loss = nn.functional.cross_entropy(self.model(inputs), labels)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), self.cfg.clip_value)
            optimizer.step()
        self.primal_state = OrderedDict(self.model.state_dict())
        if self.cfg.use_dp:
            self.laplace_mechanism_output_perturb(self.sensitivity() / self.cfg.epsilon)
        return OrderedDict((k, v.cpu()) for k, v in self.primal_state.items())


class ServerFedAvg:
    def __init__(self, cfg, model):
        self.cfg, self.model = cfg, model

    def update(self, states):
        merged = OrderedDict()
        for name in states[0]:
            merged[name] = torch.stack([s[name] for s in states]).mean(0)
        self.model.load_state_dict(merged)

    @torch.no_grad()
    def validate(self, inputs, labels):
        return (self.model(inputs).argmax(1) == labels).float().mean().item()


def make_data(n, seed):
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(n, 6, generator=generator)
    return inputs, inputs[:, :3].argmax(1)


def run_serial(cfg):
    torch.manual_seed(0)
    server = ServerFedAvg(cfg, Classifier())
    clients = [ClientOptim(i, cfg, server.model, make_data(16, i)) for i in range(cfg.clients)]
    for _ in range(cfg.rounds):
        states = []
        for client in clients:
            client.load(server.model.state_dict())
            states.append(client.update())
        server.update(states)
    return server.validate(*make_data(32, 99))


if __name__ == "__main__":
    print("plain", run_serial(FedConfig()))
    print("private", run_serial(FedConfig(use_dp=True)))

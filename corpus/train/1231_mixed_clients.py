# source: FedML-AI/FedML#779
# mechanism: clients on different devices hand their state dicts to the server as they are, and the average adds them
# expect: raises
from collections import OrderedDict
from dataclasses import dataclass
from typing import Dict, List, Tuple

import torch
from torch import nn

State = Dict[str, torch.Tensor]


@dataclass
class FedConfig:
    rounds: int = 2
    local_epochs: int = 1
    batch_size: int = 8
    lr: float = 0.05
    gpu_clients: Tuple[int, ...] = (1, 2)


class LogisticRegression(nn.Module):
    def __init__(self, dim: int, classes: int):
        super().__init__()
        self.norm = nn.BatchNorm1d(dim)
        self.linear = nn.Linear(dim, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(self.norm(x))


class Client:
    def __init__(self, cid: int, data: Tuple[torch.Tensor, torch.Tensor], device: torch.device, cfg: FedConfig):
        self.cid, self.data, self.device, self.cfg = cid, data, device, cfg
        self.model = LogisticRegression(data[0].shape[1], 3)

    @property
    def num_samples(self) -> int:
        return len(self.data[0])

    def get_model_params(self) -> State:
        return OrderedDict((k, v.detach().clone()) for k, v in self.model.state_dict().items())  # ROOT

    def set_model_params(self, params: State) -> None:
        self.model.load_state_dict(params)

    def train(self) -> State:
        self.model.to(self.device).train()
        optimizer = torch.optim.SGD(self.model.parameters(), lr=self.cfg.lr)
        x, y = self.data
        for _ in range(self.cfg.local_epochs):
            for idx in torch.randperm(len(x)).split(self.cfg.batch_size):
                loss = nn.functional.cross_entropy(self.model(x[idx].to(self.device)), y[idx].to(self.device))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        return self.get_model_params()


class Aggregator:
    def __init__(self, model: LogisticRegression):
        self.model = model
        self.model_dict: Dict[int, State] = {}
        self.sample_num: Dict[int, int] = {}

    def get_global_params(self) -> State:
        return self.model.state_dict()

    def add_local_trained_result(self, index: int, params: State, sample_num: int) -> None:
        self.model_dict[index] = params  # ALSO
        self.sample_num[index] = sample_num

    def aggregate(self) -> State:
        total = sum(self.sample_num.values())
        averaged: State = OrderedDict()
        for index, local in self.model_dict.items():
            w = self.sample_num[index] / total
            for key, value in local.items():
                if not value.is_floating_point():
                    averaged[key] = value
                elif key in averaged:
                    averaged[key] = averaged[key] + w * value  # RAISE # ALSO
                else:
                    averaged[key] = w * value
        self.model.load_state_dict(averaged)
        return averaged

    @torch.no_grad()
    def test(self, x: torch.Tensor, y: torch.Tensor) -> float:
        return (self.model.eval()(x).argmax(1) == y).float().mean().item()


def partition(n_clients: int, per_client: int, dim: int) -> List[Tuple[torch.Tensor, torch.Tensor]]:
    shards = []
    for c in range(n_clients):
        x = torch.randn(per_client + 4 * c, dim)
        shards.append((x, (x[:, :3] + 0.3 * c).argmax(1)))
    return shards


def main() -> None:
    cfg = FedConfig()
    shards = partition(4, 16, 6)
    gpu = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    devices = [gpu if c in cfg.gpu_clients else torch.device("cpu") for c in range(len(shards))]
    clients = [Client(c, shard, dev, cfg) for c, (shard, dev) in enumerate(zip(shards, devices))]
    server = Aggregator(LogisticRegression(6, 3))
    for r in range(cfg.rounds):
        for client in clients:
            client.set_model_params(server.get_global_params())
            server.add_local_trained_result(client.cid, client.train(), client.num_samples)
        server.aggregate()
        print("round", r, "acc", server.test(*shards[0]))


if __name__ == "__main__":
    main()

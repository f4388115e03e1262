# source: KarhouTam/FL-bench#172
# mechanism: the federated server keeps the mean of its clients' gradients on the CPU and sends it out with the weights, and a client compares it with its own gradients on the GPU
# expect: raises
import copy
from collections import OrderedDict
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class FedArgs:
    device: str = "cuda"
    clients: int = 3
    rounds: int = 2
    lr: float = 0.05
    penalty: float = 1e-2
    ema: float = 0.95


class Net(nn.Module):
    def __init__(self, features=6, classes=3):
        super().__init__()
        self.base = nn.Linear(features, 10)
        self.classifier = nn.Linear(10, classes)

    def forward(self, x):
        return self.classifier(torch.relu(self.base(x)))


class FedAvgClient:
    def __init__(self, args, model, data):
        self.args = args
        self.device = torch.device(args.device)
        self.model = copy.deepcopy(model).to(self.device)
        self.inputs, self.labels = (t.to(self.device) for t in data)

    def set_parameters(self, package):
        self.model.load_state_dict(package["weights"])

    def package(self):
        return {k: v.detach().cpu().clone() for k, v in self.model.state_dict().items()}


class FedIIRClient(FedAvgClient):
    def set_parameters(self, package):
        super().set_parameters(package)
        self.grad_mean = package["grad_mean"]  # ROOT

    def classifier_grads(self, create_graph=False):
        loss = F.cross_entropy(self.model(self.inputs), self.labels)
        params = list(self.model.classifier.parameters())
        return loss, torch.autograd.grad(loss, params, create_graph=create_graph)

    def cal_grad(self, package):
        self.set_parameters(package)
        _, grads = self.classifier_grads()
        return [g.detach().cpu() for g in grads]

    def fit(self):
        optimizer = torch.optim.SGD(self.model.parameters(), lr=self.args.lr)
        loss, grads = self.classifier_grads(create_graph=True)
        penalty = loss.new_zeros(())
        for grad, mean in zip(grads, self.grad_mean):
            penalty = penalty + (grad - mean).pow(2).sum()  # RAISE # ALSO
        total = loss + self.args.penalty * penalty
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
        return total.item()

    def train(self, package):
        self.set_parameters(package)
        loss = self.fit()
        return loss, self.package()


class FedIIRServer:
    def __init__(self, args, datasets):
        torch.manual_seed(0)
        self.args = args
        self.model = Net()
        self.clients = [FedIIRClient(args, self.model, d) for d in datasets]
        self.grad_mean = [torch.zeros_like(p) for p in self.model.classifier.parameters()]

    def package(self):
        weights = OrderedDict(self.model.state_dict())
        return {"weights": weights, "grad_mean": [g.clone() for g in self.grad_mean]}

    def calculate_grad_mean(self):
        batches = [client.cal_grad(self.package()) for client in self.clients]
        for i, grads in enumerate(zip(*batches)):
            mean = torch.stack(grads).mean(0)
            self.grad_mean[i] = self.args.ema * self.grad_mean[i] + (1 - self.args.ema) * mean

    def aggregate(self, states):
        merged = {k: torch.stack([s[k] for s in states]).mean(0) for k in states[0]}
        self.model.load_state_dict(merged)

    def train_one_round(self):
        self.calculate_grad_mean()
        results = [client.train(self.package()) for client in self.clients]
        self.aggregate([state for _, state in results])
        return sum(loss for loss, _ in results) / len(results)


def make_data(seed, n=12):
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(n, 6, generator=generator)
    return inputs, inputs[:, :3].argmax(1)


def main():
    args = FedArgs()
    server = FedIIRServer(args, [make_data(i) for i in range(args.clients)])
    print([round(server.train_one_round(), 4) for _ in range(args.rounds)])


if __name__ == "__main__":
    main()

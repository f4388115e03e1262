# source: LAMDA-CL/PyCIL#60
# mechanism: padding for the old classifier is put on the current CUDA device by a bare .cuda(), while the network was placed on the second GPU
# expect: raises
# needs: 2 GPUs
import copy
from typing import Dict, List, Optional

import torch
from torch import nn


class SimpleLinear(nn.Module):
    def __init__(self, in_features: int, out_features: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(out_features, in_features))
        self.bias = nn.Parameter(torch.zeros(out_features))
        nn.init.kaiming_uniform_(self.weight, nonlinearity="linear")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(x, self.weight, self.bias)


class Backbone(nn.Module):
    def __init__(self, in_dim: int, out_dim: int):
        super().__init__()
        self.out_dim = out_dim
        self.net = nn.Sequential(nn.Linear(in_dim, out_dim), nn.ReLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x)


class ExpandableNet(nn.Module):
    """A backbone for each task and one classifier over all features."""

    def __init__(self, in_dim: int, out_dim: int):
        super().__init__()
        self.in_dim, self.out_dim = in_dim, out_dim
        self.backbones = nn.ModuleList()
        self.fc: Optional[SimpleLinear] = None
        self.old_fc: Optional[SimpleLinear] = None
        self.task_sizes: List[int] = []

    @property
    def feature_dim(self) -> int:
        return self.out_dim * len(self.backbones)

    def update_fc(self, nb_classes: int) -> None:
        self.backbones.append(Backbone(self.in_dim, self.out_dim))
        fc = SimpleLinear(self.feature_dim, nb_classes)
        if self.fc is not None:
            old = self.fc
            with torch.no_grad():
                fc.weight[: old.weight.shape[0], : old.weight.shape[1]] = old.weight.cpu()
            self.old_fc = copy.deepcopy(old)
            for p in self.old_fc.parameters():
                p.requires_grad_(False)
        self.fc = fc
        self.task_sizes.append(nb_classes - sum(self.task_sizes))

    def forward(self, x: torch.Tensor) -> Dict[str, torch.Tensor]:
        features = torch.cat([backbone(x) for backbone in self.backbones], dim=1)
        out = {"features": features, "logits": self.fc(features)}
        if self.old_fc is not None:
            n_old = self.old_fc.weight.shape[0]
            padding = torch.zeros(n_old, self.out_dim).cuda()  # ROOT
            weight = torch.cat([self.old_fc.weight, padding], dim=1)  # RAISE # ALSO
            out["old_logits"] = nn.functional.linear(features, weight, self.old_fc.bias)
        return out


class Learner:
    def __init__(self, args: Dict[str, object]):
        self.device = args["device"][0]
        self.network = ExpandableNet(args["in_dim"], args["width"])
        self.temperature, self.epochs = args["temperature"], args["epochs"]
        self.total_classes = 0

    def _distill(self, logits: torch.Tensor, old_logits: torch.Tensor) -> torch.Tensor:
        n_old = old_logits.shape[1]
        log_p = torch.log_softmax(logits[:, :n_old] / self.temperature, dim=1)
        return -(log_p * torch.softmax(old_logits / self.temperature, dim=1)).sum(1).mean()

    def incremental_train(self, x: torch.Tensor, y: torch.Tensor, new_classes: int) -> float:
        self.total_classes += new_classes
        self.network.update_fc(self.total_classes)
        self.network.to(self.device)
        optimizer = torch.optim.SGD([p for p in self.network.parameters() if p.requires_grad], lr=0.05)
        loss = torch.zeros(())
        for _ in range(self.epochs):
            for idx in torch.randperm(len(x)).split(16):
                inputs, targets = x[idx].to(self.device), y[idx].to(self.device)
                out = self.network(inputs)
                loss = nn.functional.cross_entropy(out["logits"], targets)
                if "old_logits" in out:
                    loss = loss + self._distill(out["logits"], out["old_logits"])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        return loss.item()


def main() -> None:
    device = torch.device("cuda:1")
    args = {"device": [device], "in_dim": 6, "width": 8, "temperature": 2.0, "epochs": 1}
    learner = Learner(args)
    for task in range(3):
        x, y = torch.randn(32, 6), torch.randint(2 * task, 2 * task + 2, (32,))
        print("task", task, learner.incremental_train(x, y, 2))


if __name__ == "__main__":
    main()

# source: securefederatedai/openfederatedlearning#298
# mechanism: the runner restores the optimizer's momentum for the device assigned to a task, and the task itself then moves the model to another one
# expect: raises
from typing import Any, Callable, Dict, List, Tuple

import torch
from torch import nn


class FrameworkAdapter:
    @staticmethod
    def get_tensor_dict(model: nn.Module, optimizer: torch.optim.Optimizer) -> Dict[str, Any]:
        tensors = {k: v.detach().cpu().clone() for k, v in model.state_dict().items()}
        buffers = [s["momentum_buffer"] for s in optimizer.state.values()]
        return {"model": tensors, "momentum": [b.detach().cpu().clone() for b in buffers]}

    @staticmethod
    def set_tensor_dict(model: nn.Module, tensors: Dict[str, Any], optimizer: torch.optim.Optimizer, device: str) -> None:
        model.load_state_dict({k: v.to(device) for k, v in tensors["model"].items()})
        for state, value in zip(optimizer.state.values(), tensors["momentum"]):
            state["momentum_buffer"] = value.to(device)


def optimizer_to(optimizer: torch.optim.Optimizer, device: str) -> None:
    for state in optimizer.state.values():
        for key, value in state.items():
            if isinstance(value, torch.Tensor):
                state[key] = value.to(device)


class TaskRegistry:
    def __init__(self):
        self.tasks: Dict[str, Callable] = {}

    def register(self, name: str) -> Callable:
        def decorator(func: Callable) -> Callable:
            self.tasks[name] = func
            return func
        return decorator


registry = TaskRegistry()


@registry.register("train")
def train(model: nn.Module, loader: List, optimizer: torch.optim.Optimizer, device: str) -> float:
    device = "cuda:0" if torch.cuda.is_available() else device
    model.train()
    model.to(device)  # ROOT
    total = 0.0
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()  # RAISE
        total += loss.item()
    return total / len(loader)


@registry.register("validate")
def validate(model: nn.Module, loader: List, optimizer: torch.optim.Optimizer, device: str) -> float:
    model.eval()
    model.to(device)
    with torch.no_grad():
        hits = [(model(x.to(device)).argmax(1) == y.to(device)).float().mean().item() for x, y in loader]
    return sum(hits) / len(hits)


class SegmentNet(nn.Module):
    def __init__(self, dim: int, classes: int):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(dim, 16), nn.ReLU())
        self.head = nn.Linear(16, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x))


class Collaborator:
    def __init__(self, model: nn.Module, loader: List, assigned: str = "cpu"):
        self.model, self.loader, self.assigned = model, loader, assigned
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)
        self.adapter = FrameworkAdapter()

    def run_task(self, name: str, tensors: Dict[str, Any]) -> Tuple[float, Dict[str, Any]]:
        self.adapter.set_tensor_dict(self.model, tensors, self.optimizer, self.assigned)
        metric = registry.tasks[name](self.model, self.loader, self.optimizer, self.assigned)
        return metric, self.adapter.get_tensor_dict(self.model, self.optimizer)


def average(updates: List[Dict[str, Any]]) -> Dict[str, Any]:
    keys = updates[0]["model"]
    model = {k: torch.stack([u["model"][k] for u in updates]).mean(0) for k in keys}
    momentum = [torch.stack(group).mean(0) for group in zip(*(u["momentum"] for u in updates))]
    return {"model": model, "momentum": momentum}


def main() -> None:
    collaborators = []
    for _ in range(2):
        loader = [(torch.randn(8, 5), torch.randint(0, 3, (8,))) for _ in range(3)]
        collaborators.append(Collaborator(SegmentNet(5, 3), loader))
    first = collaborators[0]
    tensors = first.adapter.get_tensor_dict(first.model, first.optimizer)
    for round_number in range(2):
        results = [c.run_task("train", tensors) for c in collaborators]
        tensors = average([update for _, update in results])
        scores = [c.run_task("validate", tensors)[0] for c in collaborators]
        print(round_number, [loss for loss, _ in results], scores)


if __name__ == "__main__":
    main()

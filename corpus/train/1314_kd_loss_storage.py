# source: openvinotoolkit/nncf#881
# mechanism: every replica adds its distillation loss to one running sum of the handler, which lies on the first GPU
# expect: raises
# needs: 2 GPUs
import copy

import torch
import torch.nn.functional as F
from torch import nn


class KDLossHandler:
    def __init__(self, original_model, temperature, device):
        self.original_model = original_model.eval()
        self.temperature = temperature
        self.device = device
        self.reset()

    def reset(self):
        self.total = torch.zeros([], device=self.device)
        self.count = 0

    def teacher_for(self, device):
        return copy.deepcopy(self.original_model).to(device)

    def record(self, inputs, student_logits):
        teacher = self.teacher_for(inputs.device)
        with torch.no_grad():
            teacher_logits = teacher(inputs)
        value = F.kl_div(
            F.log_softmax(student_logits / self.temperature, dim=1),
            F.softmax(teacher_logits / self.temperature, dim=1),
            reduction="batchmean",
        )  # ALSO
        self.total = self.total + value * self.temperature**2  # RAISE # ROOT
        self.count += 1

    def loss(self):
        mean = self.total / max(1, self.count)
        self.reset()
        return mean


class Net(nn.Module):
    def __init__(self, width, classes=5):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(10, width), nn.ReLU())
        self.fc = nn.Linear(width, classes)

    def forward(self, x):
        return self.fc(self.body(x))


class CompressedModel(nn.Module):
    def __init__(self, net, handler):
        super().__init__()
        self.net = net
        self.handler = handler

    def forward(self, x):
        logits = self.net(x)
        if self.training:
            self.handler.record(x, logits)
        return logits


def functional_replica(model, device):
    params = {k: v.to(device) for k, v in model.named_parameters()}
    return lambda x: torch.func.functional_call(model, params, (x,))


def data_parallel(model, batch, devices):
    outputs = []
    for chunk, device in zip(batch.chunk(len(devices)), devices):
        outputs.append(functional_replica(model, device)(chunk.to(device)))
    return torch.cat([out.to(devices[0]) for out in outputs])


def train_epoch(model, handler, loader, devices, optimizer):
    model.train()
    for inputs, labels in loader:
        logits = data_parallel(model, inputs, devices)
        loss = F.cross_entropy(logits, labels.to(devices[0])) + handler.loss()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def main():
    torch.manual_seed(0)
    loader = [(torch.randn(8, 10), torch.randint(0, 5, (8,))) for _ in range(2)]
    main_device = torch.device("cuda:0")
    handler = KDLossHandler(Net(32).to(main_device), temperature=2.0, device=main_device)
    model = CompressedModel(Net(8), handler).to(main_device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for devices in (["cuda:0"], ["cuda:0", "cuda:1"]):
        print(len(devices), train_epoch(model, handler, loader, devices, optimizer))


if __name__ == "__main__":
    main()

# source: https://github.com/pytorch/pytorch/issues/149395
# mechanism: weights that are not needed are parked on the CPU, and only those of a set come back; one is no member
# phase: forward; aten::linear
# expect: raises
import torch

dev = torch.device("cuda", 0)


class Parking:
    def __init__(self, module):
        self.module = module
        self.parked = set()

    def leave(self):
        for parameter in self.module.parameters():
            if parameter.requires_grad:  # ALSO
                self.parked.add(parameter)
            parameter.data = parameter.data.to("cpu")  # ROOT

    def come_back(self):
        for parameter in self.parked:  # ALSO
            parameter.data = parameter.data.to(dev)
        self.parked.clear()


class Classifier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = torch.nn.Linear(4, 8).requires_grad_(False)
        self.head = torch.nn.Linear(8, 2)

    def forward(self, x):
        return self.head(torch.nn.functional.linear(x, self.backbone.weight).tanh())  # RAISE


model = Classifier().to(dev)
parking = Parking(model)
optimizer = torch.optim.SGD(model.head.parameters(), lr=0.1)
for _ in range(2):
    loss = model(torch.randn(5, 4, device=dev)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    parking.leave()
    parking.come_back()

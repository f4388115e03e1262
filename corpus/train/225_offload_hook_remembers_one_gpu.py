# source: bghira/SimpleTuner PR#2521 (review)
# mechanism: activations wait on the CPU for backward; the hooks remember one device for all, that of the last tensor
# phase: backward; aten::mm or another operator of an autograd node
# expect: raises
# needs: 2 GPUs
import torch

first, second = torch.device("cuda", 0), torch.device("cuda", 1)


class ParkedActivations(torch.autograd.graph.saved_tensors_hooks):
    def __init__(self):
        self.home = None
        super().__init__(self.park, self.fetch)

    def park(self, tensor):
        if not tensor.is_cuda:
            return tensor
        self.home = tensor.device  # ROOT
        return tensor.cpu()  # ALSO

    def fetch(self, tensor):
        return tensor.to(self.home)  # ALSO


class Pipeline(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.bottom = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 8)).to(first)
        self.top = torch.nn.Sequential(torch.nn.Tanh(), torch.nn.Linear(8, 1)).to(second)

    def forward(self, x):
        return self.top(self.bottom(x).to(second))


model = Pipeline()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    with ParkedActivations():
        loss = model(torch.randn(6, 4, device=first)).pow(2).mean()
    loss.backward()  # RAISE
    optimizer.step()

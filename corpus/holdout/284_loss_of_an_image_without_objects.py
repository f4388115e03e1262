# source: yhenon/pytorch-retinanet PR#220
# mechanism: the loss of an image without objects is a 0-dim CPU zero; stacking has no exemption for such
# phase: loss; aten::stack or aten::cat
# expect: raises
import torch

dev = torch.device("cuda", 0)


class BoxLoss(torch.nn.Module):
    def forward(self, predicted, targets):
        losses = []
        for boxes, target in zip(predicted, targets):
            if len(target) == 0:
                losses.append(torch.tensor(0.0))  # ROOT
                continue
            distance = torch.cdist(target, boxes, p=1)
            losses.append(distance.amin(1).mean())
        return torch.stack(losses).mean()  # RAISE


class Detector(torch.nn.Module):
    def __init__(self, queries):
        super().__init__()
        self.head = torch.nn.Linear(6, queries * 4)
        self.queries = queries

    def forward(self, features):
        return self.head(features).view(-1, self.queries, 4)


detector, criterion = Detector(queries=3).to(dev), BoxLoss().to(dev)
optimizer = torch.optim.SGD(detector.parameters(), lr=0.01)
for counts in ((1, 2), (2, 0)):
    features = torch.randn(len(counts), 6, device=dev)
    targets = [torch.rand(count, 4, device=dev) for count in counts]
    loss = criterion(detector(features), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

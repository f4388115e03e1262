# source: zillur01/LVLane#13
# mechanism: [data not moved] helper that moves a batch dict tests the key instead of the value for being a tensor, so it skips every entry and returns the batch as it came
# phase: forward; failing op: aten::conv2d ('Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be the same')
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class LaneNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone, self.head = nn.Conv2d(3, 4, 3), nn.Linear(4, 2)

    def forward(self, batch):
        feat = self.backbone(batch["img"])  # RAISE
        return self.head(feat.mean((2, 3)))

class Runner:
    def __init__(self, net, device):
        self.net, self.device = net.to(device), device

    def to_cuda(self, batch):
        for k in batch:
            if not isinstance(k, torch.Tensor):  # ROOT
                continue
            batch[k] = batch[k].to(self.device)
        return batch

    def train_epoch(self, loader):
        for data in loader:
            data = self.to_cuda(data)
            loss = nn.functional.cross_entropy(self.net(data), data["category"])
            loss.backward()

batches = [{"img": torch.randn(2, 3, 8, 8), "category": torch.tensor([0, 1]), "path": ["a.jpg", "b.jpg"]}]
Runner(LaneNet(), dev).train_epoch(batches)

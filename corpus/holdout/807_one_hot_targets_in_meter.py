# source: facebookresearch/ClassyVision PR#69
# mechanism: [factory call without device=] one-hot target is made on CUDA whenever CUDA is there, not on the target's device; the meter is fed outputs already brought to the CPU
# phase: metering; failing op: aten::scatter_ (argument index)
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


def convert_to_one_hot(targets, classes):
    where = "cuda" if torch.cuda.is_available() else "cpu"  # ALSO
    one_hot = torch.zeros((targets.shape[0], classes), dtype=torch.long, device=where)  # ROOT
    return one_hot.scatter_(1, targets, 1)  # RAISE


class SoftTargetLoss:
    def __call__(self, logits, targets):
        soft = convert_to_one_hot(targets.view(-1, 1), logits.shape[1]).float()
        return -(soft * logits.log_softmax(1)).sum(1).mean()


class RecallMeter:
    def __init__(self, k):
        self.k, self.hits, self.total = k, 0, 0

    def update(self, logits, targets):
        one_hot = convert_to_one_hot(targets.view(-1, 1), logits.shape[1])
        top = logits.topk(self.k, 1).indices
        self.hits += int(one_hot.gather(1, top).sum())
        self.total += targets.shape[0]


net, loss, meter = nn.Linear(4, 5).to(dev), SoftTargetLoss(), RecallMeter(2)
x, y = torch.randn(6, 4, device=dev), torch.arange(6, device=dev) % 5
logits = net(x)
loss(logits, y).backward()
meter.update(logits.detach().cpu(), y.cpu())

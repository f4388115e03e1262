# source: Lightning-AI/torchmetrics#1047 #917
# mechanism: a metric keeps 0-dim CPU totals; adding a 0-dim CUDA value in place has no exemption
# phase: metrics; aten::add_
# expect: raises
import torch

dev = torch.device("cuda", 0)


class MeanError:
    def __init__(self):
        self.total = torch.tensor(0.0)  # ROOT
        self.seen = 0

    def update(self, predicted, wanted):
        self.total += (predicted - wanted).abs().sum()  # RAISE  # ALSO
        self.seen += wanted.numel()


metric = MeanError()
metric.update(torch.randn(4, device=dev), torch.randn(4, device=dev))

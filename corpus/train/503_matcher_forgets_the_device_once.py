# source: https://github.com/rwightman/efficientdet-pytorch/issues/105
# mechanism: a helper makes on the host what it is given no device for; of two methods that call it one gives none
# phase: matching; failing op: aten::where.self
# expect: raises
import torch


def constant(count, value, device=None):
    return torch.full((count,), value, dtype=torch.float32, device=device)


class Matcher:
    def __init__(self, least, device):
        self.least = least
        self.device = torch.device(device)

    def empty(self, columns):
        return constant(columns, -1.0, device=self.device)

    def match(self, similarity):
        if similarity.numel() == 0:
            return self.empty(similarity.shape[1])
        best, row = similarity.max(0)
        nothing = constant(similarity.shape[1], -1.0)  # ROOT
        return torch.where(best > self.least, row.float(), nothing)  # RAISE  # ALSO


anchors = torch.rand(10, 4, device="cuda")
truth = torch.rand(3, 4, device="cuda")
matcher = Matcher(0.4, "cuda")
print(matcher.match(truth[:0] @ anchors.t()))
print(matcher.match(truth @ anchors.t()))

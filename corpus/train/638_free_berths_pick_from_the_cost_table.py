# source: iSEE-Laboratory/ASAG#5
# mechanism: a matcher brings its costs to the host; the mask of valid rows that indexes them is taken from the outputs and stays
# phase: matching; aten::index
# expect: raises
import torch
from torch import nn


def assign(cost):
    rows, columns = [], []
    cost = cost.clone()
    for column in range(min(cost.shape)):
        row = int(cost[:, column].argmin())
        cost[row] = float("inf")
        rows.append(row)
        columns.append(column)
    return torch.tensor(rows), torch.tensor(columns)


class BerthMatcher(nn.Module):
    def __init__(self, length_weight=2.0):
        super().__init__()
        self.length_weight = length_weight

    @torch.no_grad()
    def forward(self, outputs, ships):
        count, berths = outputs["places"].shape[:2]
        valid = outputs["valid"]  # ROOT
        places, lengths = outputs["places"].flatten(0, 1), outputs["lengths"].flatten(0, 1)
        cost = torch.cdist(places, torch.cat([s["places"] for s in ships]), p=1)
        cost = cost + self.length_weight * torch.cdist(lengths, torch.cat([s["lengths"] for s in ships]), p=1)
        cost = cost.view(count, berths, -1).cpu()
        sizes = [len(s["places"]) for s in ships]
        return [assign(c[i][valid[i]]) for i, c in enumerate(cost.split(sizes, -1))]  # RAISE  # ALSO


class Planner(nn.Module):
    def __init__(self):
        super().__init__()
        self.place, self.length, self.free = nn.Linear(8, 2), nn.Linear(8, 1), nn.Linear(8, 1)

    def forward(self, x):
        return {"places": self.place(x), "lengths": self.length(x), "valid": self.free(x).squeeze(-1) > -1}


planner = Planner().to("cuda")
outputs = planner(torch.randn(2, 9, 8, device="cuda"))
ships = [{"places": torch.rand(n, 2, device="cuda"), "lengths": torch.rand(n, 1, device="cuda")} for n in (2, 3)]
print(BerthMatcher()(outputs, ships))

# source: own; running statistics that their object names in a list, and puts back to what they began with
# mechanism: what begins anew is a copy of the defaults, which nobody has moved; the line stores it by a name that is put together
# phase: second epoch; failing op: aten::add_.Tensor
# expect: raises
import torch

device = torch.device("cuda", 0)


class Statistics:
    fields = ("total", "squares")

    def __init__(self, width):
        self.defaults = {field: torch.zeros(width) for field in self.fields}
        self.begin()

    def begin(self):
        for field in self.fields:
            setattr(self, f"run_{field}", self.defaults[field].clone())  # ROOT

    def to(self, device):
        for field in self.fields:
            setattr(self, f"run_{field}", getattr(self, f"run_{field}").to(device))  # ALSO
        return self

    def update(self, rows):
        self.run_total += rows.sum(0)  # RAISE
        self.run_squares += rows.square().sum(0)


statistics = Statistics(4).to(device)
for epoch in range(2):
    for _ in range(3):
        statistics.update(torch.randn(8, 4, device=device))
    statistics.begin()

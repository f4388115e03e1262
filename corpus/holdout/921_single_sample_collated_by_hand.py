# source: woven-by-toyota/l5kit PR#346
# mechanism: [data not moved] one sample is collated by hand for a visual check; default_collate leaves its output on the CPU
# phase: evaluation; failing op: aten::conv2d ('Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be the same')
# expect: raises
# root: open_loop_test.ipynb: data_batch = default_collate([data]) never sent to device
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device('cuda', 0)


class Planner(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 3)

    def forward(self, batch):
        return self.conv(batch["image"]).mean((2, 3)) - batch["target"]  # RAISE

data = [{"image": torch.randn(2, 6, 6), "target": torch.zeros(3)}]
model = Planner().to(dev)
batch = torch.utils.data.default_collate([data[0]])  # ROOT
model(batch)  # ALSO

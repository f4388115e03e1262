# source: kmkurn/pytorch-crf PR#101 ('have you checked that tags has been moved to GPU? mask is created in the same device as tags'; 'that is my problem')
# mechanism: [data not moved] gold tags stay on the CPU; as indices into CUDA tables they pass, the mask derived from them with ones_like does not
# phase: loss; failing op: aten::mul (cuda 1-D x cpu 1-D)
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class CRF(nn.Module):
    def __init__(self, tags):
        super().__init__()
        self.start, self.trans = nn.Parameter(torch.randn(tags)), nn.Parameter(torch.randn(tags, tags))

    def path_score(self, emissions, tags, mask):
        rows = torch.arange(emissions.shape[1])
        score = self.start[tags[0]] + emissions[0, rows, tags[0]]
        for i in range(1, len(tags)):
            step = self.trans[tags[i - 1], tags[i]] + emissions[i, rows, tags[i]]
            score = score + step * mask[i]  # RAISE
        return score

    def forward(self, emissions, tags, mask=None):
        if mask is None:
            mask = torch.ones_like(tags, dtype=torch.float)  # ALSO
        return -self.path_score(emissions, tags, mask).mean()

def train_step(encoder, crf, batch):
    words = batch["words"].to(dev)
    tags = batch["tags"]  # ROOT
    crf(encoder(words), tags).backward()  # ALSO

batch = {"words": torch.randint(0, 9, (5, 2)), "tags": torch.randint(0, 3, (5, 2))}
train_step(nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 3)).to(dev), CRF(3).to(dev), batch)

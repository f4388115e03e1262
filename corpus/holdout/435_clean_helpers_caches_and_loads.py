# source: none; what caches, tokenizers, checkpoints and losses do when they do it right
# mechanism: caches that know the device, helpers whose callers all move, parts of checkpoints that are moved, labels that follow
# phase: forward
# expect: clean
# needs: 2 GPUs
import io

import torch
from torch import nn
from torch.nn import functional as F


class Rows:
    def __init__(self):
        self.known = {}

    def get(self, count, device):
        key = (count, device)
        if key not in self.known:
            self.known[key] = torch.arange(count, device=device)
        return self.known[key]


def encode(text):
    return torch.tensor([ord(letter) % 16 for letter in text])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(16, 8)
        self.head = nn.Linear(8, 16)
        self.register_buffer("mean", torch.zeros(16))
        self.rows = Rows()

    def forward(self, ids):
        places = self.rows.get(len(ids), ids.device)
        return self.head(self.embed(ids)) + places[:, None] - self.mean


net = Net()
print(net(encode("try")).shape)
net.cuda()
prompt = encode("prompt").to("cuda")
stop = encode("stop").cuda()
counted = encode("only counted")
file = io.BytesIO()
torch.save({"net": net.state_dict(), "mean": net.mean}, file)
file.seek(0)
state = torch.load(file, map_location="cpu")
net.load_state_dict(state["net"])
net.mean = state["mean"].to("cuda")
for _ in range(3):
    logits = net(prompt)
    loss = F.cross_entropy(logits.to("cuda:1"), prompt.to("cuda:1"))
    loss.backward()
print(len(counted), bool((net(prompt).argmax(-1)[-4:] == stop).any()))

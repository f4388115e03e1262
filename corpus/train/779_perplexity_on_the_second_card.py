# source: Xilinx/brevitas PR#949
# mechanism: [data not moved] evaluation moves each batch with .cuda(), which means the current card, cuda:0; the model was put on another card
# phase: evaluation; failing op: aten::embedding (cuda:1 table, cuda:0 index)
# expect: raises
# needs: 2 GPUs
import torch
import torch.nn as nn
import torch.nn.functional as F

d1 = torch.device("cuda", 1)


class TinyLM(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.tok, self.out = nn.Embedding(vocab, dim), nn.Linear(dim, vocab)

    def forward(self, ids):
        return self.out(self.tok(ids).cumsum(1))  # RAISE

@torch.no_grad()
def model_eval(model, ids, seqlen):
    nll = []
    for part in ids.view(-1, seqlen):
        part = part.cuda()  # ROOT
        logits = model(part[None])[0]
        nll.append(F.cross_entropy(logits[:-1], part[1:]))
    return torch.stack(nll).mean().exp()

model = TinyLM(11, 4).to(d1).eval()
model_eval(model, torch.randint(0, 11, (32,)), 8)

# source: jina-ai/clip-as-service PR#710 ('fix: keep logit_scale on same device')
# mechanism: [zero-dim scalar] learned 0-dim temperature taken from the CUDA model, multiplied into embeddings that were already brought back to the host
# phase: ranking; failing op: aten::mul (cuda 0-d x cpu 1-D)
# expect: raises
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device("cuda", 0)


class Clip(nn.Module):
    def __init__(self):
        super().__init__()
        self.visual, self.textual = nn.Linear(6, 4), nn.Linear(5, 4)
        self.logit_scale = nn.Parameter(torch.tensor(2.66))

class Ranker:
    def __init__(self, model):
        self.model = model.eval()
        self.scale = self.model.logit_scale.detach().exp()  # ROOT

    @torch.no_grad()
    def encode(self, tower, x):
        return F.normalize(tower(x.to(dev)), dim=-1).cpu()

    def rank(self, query, matches):
        sims = self.encode(self.model.visual, matches) @ self.encode(self.model.textual, query)
        return (self.scale * sims).softmax(0)  # RAISE  # ALSO

Ranker(Clip().to(dev)).rank(torch.randn(5), torch.randn(3, 6))

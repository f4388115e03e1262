# source: huggingface/transformers PR#43177
# mechanism: [model-parallel hook] cache keeps its keys on the GPU and parks its values on the CPU; the beam reorder moves the index once, to the keys' device, and uses it for both
# phase: generation (beam search); failing op: aten::index_select (cpu values, cuda index)
# expect: raises
import torch

dev = torch.device("cuda", 0)


class LayerCache:
    def __init__(self, park):
        self.park, self.keys, self.values = park, None, None

    def update(self, k, v):
        if self.keys is None:
            self.keys, self.values = k, v.to(self.park)
        else:
            self.keys = torch.cat([self.keys, k], dim=1)
            self.values = torch.cat([self.values, v.to(self.park)], dim=1)
        return self.keys, self.values.to(k.device)

    def reorder(self, beam_idx):
        beam_idx = beam_idx.to(self.keys.device)  # ROOT
        self.keys = self.keys.index_select(0, beam_idx)
        self.values = self.values.index_select(0, beam_idx)  # RAISE  # ALSO

class Decoder:
    def __init__(self, layers):
        self.caches = [LayerCache(torch.device('cpu')) for _ in range(layers)]
        self.qkv = torch.nn.Linear(4, 12).to(dev)

    def step(self, h):
        for c in self.caches:
            q, k, v = self.qkv(h).chunk(3, -1)
            k, v = c.update(k, v)
            h = h + (q @ k.transpose(1, 2)).softmax(-1) @ v
        return h[:, -1]

dec = Decoder(2)
scores = dec.step(torch.randn(3, 1, 4, device=dev))
beams = scores.sum(-1).topk(3).indices
for c in dec.caches:
    c.reorder(beams)

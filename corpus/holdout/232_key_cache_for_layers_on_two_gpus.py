# source: huggingface/transformers#32624, PR#33303
# mechanism: a static cache makes all layers' keys on one GPU; the layers are spread over two
# phase: generation; aten::index_copy_
# expect: raises
# needs: 2 GPUs
import torch

first, second = torch.device("cuda", 0), torch.device("cuda", 1)


class StaticCache:
    def __init__(self, layers, length, width, device):
        self.keys = [torch.zeros(length, width, device=device) for _ in range(layers)]  # ROOT

    def update(self, layer, keys, start):
        positions = torch.arange(start, start + keys.shape[0], device=keys.device)
        self.keys[layer].index_copy_(0, positions, keys)  # RAISE  # ALSO
        return self.keys[layer][: start + keys.shape[0]]


class Decoder(torch.nn.Module):
    def __init__(self, width, placement):
        super().__init__()
        self.queries = torch.nn.ModuleList(torch.nn.Linear(width, width).to(device) for device in placement)
        self.projections = torch.nn.ModuleList(torch.nn.Linear(width, width).to(device) for device in placement)
        self.placement = placement

    def forward(self, x, cache, start):
        for layer, device in enumerate(self.placement):
            x = x.to(device)
            keys = cache.update(layer, self.projections[layer](x), start)
            x = x + (self.queries[layer](x) @ keys.T).softmax(-1) @ keys
        return x


decoder = Decoder(4, [first, first, second, second])
cache = StaticCache(layers=4, length=16, width=4, device=first)
with torch.no_grad():
    decoder(torch.randn(5, 4), cache, start=0)

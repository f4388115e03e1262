# source: OpenGVLab/InternVL PR#789 (related to #774: add rotary_emb to the device map of split_model)
# mechanism: [model-parallel hook] hand-written device map lists every part of the language model but one that has only a buffer; that part is dispatched nowhere and gets no hook
# phase: forward; failing op: aten::mul / outer product (cuda vs cpu)
# expect: raises
# needs: 2 GPUs
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class Rotary(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer("inv_freq", 1.0 / 100 ** (torch.arange(dim) / dim))

    def forward(self, positions):
        return (positions[:, None] * self.inv_freq).cos()  # RAISE  # ALSO

class Layer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x, cos):
        return x + self.fc(x * cos)

class Decoder(nn.Module):
    def __init__(self, dim=4):
        super().__init__()
        self.embed, self.rotary, self.head = nn.Embedding(9, dim), Rotary(dim), nn.Linear(dim, 9)
        self.layers = nn.ModuleList(Layer(dim) for _ in range(2))

    def forward(self, ids):
        x, cos = self.embed(ids), self.rotary(torch.arange(ids.shape[-1], device=ids.device))
        first, last = self.layers
        return self.head(last(first(x, cos), cos))

device_map = {"embed": 0, "layers.0": 0, "layers.1": 1, "head": 0}  # ROOT
model = Decoder()  # ALSO
for name, index in device_map.items():
    part, where = model.get_submodule(name), torch.device("cuda", index)
    part.to(where).register_forward_pre_hook(lambda m, args, where=where: tuple(a.to(where) for a in args))
model(torch.tensor([[1, 2, 3]], device=dev))

# source: steering-vectors/steering-vectors PR#40 (batch_indices and the read indices are moved to the activations' device)
# mechanism: [index device] token positions are made on the first device, activations of later layers are recorded on the second
# phase: activation extraction; failing op: aten::index
# expect: raises
# needs: 2 GPUs
# root: train_steering_vector.py:_extract_activations: batch_indices, read_indices without .to(activation.device)
import torch
import torch.nn as nn

d0, d1 = torch.device('cuda', 0), torch.device('cuda', 1)


class Sharded(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(8, 4).to(d0)
        self.layers = nn.ModuleList([nn.Linear(4, 4).to(d0), nn.Linear(4, 4).to(d1)])

    def forward(self, ids, mask):
        h = self.embed(ids)
        for layer in self.layers:
            h = layer(h.to(layer.weight.device))
        return h


def extract(model, ids, mask):
    record, results = {}, {}
    handles = [m.register_forward_hook(lambda m, a, out, i=i: record.__setitem__(i, out.detach()))
               for i, m in enumerate(model.layers)]
    model(ids, mask)
    batch = torch.arange(ids.shape[0], device=ids.device)
    last = mask.sum(1) - 1
    for i, activation in record.items():  # ALSO
        results[i] = activation[                       # RAISE
            batch, last                                # ROOT
        ]
    return results

ids = torch.tensor([[1, 2, 3], [4, 5, 0]], device=d0)
extract(Sharded(), ids, (ids > 0).long())

# source: near misses of programs 601 to 605
# mechanism: one branch moves and the other has no need to; arguments that stay on the host on purpose; a helper's own device
# expect: clean
import torch
from torch import nn


def as_batch(values, lengths, device, on_host=False):
    if on_host:
        values = values.float()
    else:
        values = values.float().to(device)
    lengths = lengths.long()
    packed = nn.utils.rnn.pack_padded_sequence(values, lengths, batch_first=True, enforce_sorted=False)
    return packed, lengths


def helper(table, device=None):
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    return table.to(device).mean(0)


rows = torch.randn(4, 6, 3)
packed, lengths = as_batch(rows, torch.tensor([6, 2, 5, 1]), "cuda")
states = nn.Linear(3, 5).to("cuda")(packed.data)
table = torch.arange(6.0).view(3, 2)
centred = table - helper(table).cpu()
steps = torch.arange(6, device=lengths.device) < lengths[:, None]
kept = rows[steps].to("cuda") * helper(rows.flatten(0, 1))
as_batch(rows, lengths, "cuda", on_host=True)

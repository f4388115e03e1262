# source: huggingface/accelerate#178 ('send_to_device handles any Mapping, not just dict; workaround: collate into a plain dict')
# mechanism: [data not moved] the recursive mover asks for dict, the tokenizer's batch is a UserDict and passes through untouched
# phase: forward; failing op: aten::embedding
# expect: raises
# root: operations.py:send_to_device: isinstance(tensor, dict) became isinstance(tensor, Mapping)
from collections import UserDict

import torch
import torch.nn as nn

dev = torch.device('cuda', 0)


class BatchEncoding(UserDict):  # ALSO
    pass


def send_to_device(obj, device):
    if isinstance(obj, (list, tuple)):
        return type(obj)(send_to_device(o, device) for o in obj)
    elif isinstance(obj, dict):                        # ROOT
        return {k: send_to_device(v, device) for k, v in obj.items()}
    elif not hasattr(obj, "to"):
        return obj
    return obj.to(device)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(10, 4)

    def forward(self, input_ids, attention_mask):
        hidden = self.words(input_ids)                 # RAISE
        return (hidden * attention_mask.unsqueeze(-1)).sum(1)

model = Encoder().to(dev)
loader = [BatchEncoding(input_ids=torch.ones(2, 3, dtype=torch.long), attention_mask=torch.ones(2, 3))]  # ALSO
for batch in loader:
    model(**send_to_device(batch, dev))

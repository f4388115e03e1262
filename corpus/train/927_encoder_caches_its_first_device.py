# source: mimic-video/mimic-video PR#11 (offload_text_encoder=True)
# mechanism: [model-parallel hook] wrapper remembers the device it was constructed with; the offload path moves the module inside, inputs keep going to the old device
# phase: text encoding; failing op: aten::index_select / embedding (argument index)
# expect: raises
# root: encode_prompts: inputs moved to the device cached at construction instead of the module's own at call time
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device('cuda', 0)


class TextEncoder:
    def __init__(self, device):
        self.device = device
        self.model = nn.Embedding(10, 4).to(device)

    def encode_prompts(self, ids):
        ids = ids.to(self.device)  # ROOT
        return self.model(ids)  # RAISE  # ALSO

enc = TextEncoder("cpu")
enc.model.to(dev)  # ALSO
enc.encode_prompts(torch.tensor([[1, 2, 3]]))

# source: huggingface/diffusers PR#10325 (EMAModel.from_pretrained(...) is followed by .to(torch_device))
# mechanism: [EMA] averaged weights are read back from disk onto the host and compared with the ones on the device
# phase: check after a checkpoint; failing op: aten::isclose in allclose
# expect: raises
# root: test_ema.py:test_from_pretrained: loaded_unet without .to(torch_device)
import io

import torch
import torch.nn as nn

dev = torch.device('cuda', 0)


class EMAModel:
    def __init__(self, params, decay=0.99):
        self.decay, self.shadow = decay, [p.detach().clone() for p in params]

    def step(self, params):
        for s, p in zip(self.shadow, params):
            s.sub_((1 - self.decay) * (s - p.detach()))

    def save_pretrained(self, file):
        torch.save([s.cpu() for s in self.shadow], file)

    @classmethod
    def from_pretrained(cls, file):
        file.seek(0)
        return cls(torch.load(file))

    def to(self, device):
        self.shadow = [s.to(device) for s in self.shadow]
        return self

unet = nn.Linear(3, 3).to(dev)
ema = EMAModel(unet.parameters())
ema.step(unet.parameters())
file = io.BytesIO()
ema.save_pretrained(file)
loaded = EMAModel.from_pretrained(file)                # ROOT
for kept, read in zip(ema.shadow, loaded.shadow):
    assert torch.allclose(kept, read)                  # RAISE  # ALSO

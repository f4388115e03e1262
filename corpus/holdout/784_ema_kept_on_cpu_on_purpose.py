# source: huggingface/pytorch-image-models#2127
# mechanism: [EMA / shadow copy] EMA deliberately lives on the CPU (device='cpu'); the update interpolates towards the CUDA weights without bringing them over
# phase: after optimizer step; failing op: aten::lerp_
# expect: raises
import copy
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class ModelEma(nn.Module):
    def __init__(self, model, decay=0.9, device=None):
        super().__init__()
        self.module = copy.deepcopy(model).eval()
        self.decay, self.device = decay, device
        if device is not None:
            self.module.to(device=device)

    @torch.no_grad()
    def update(self, model):
        for ema_v, model_v in zip(self.module.state_dict().values(), model.state_dict().values()):
            if ema_v.is_floating_point():
                ema_v.lerp_(model_v, weight=1.0 - self.decay)  # ROOT  # RAISE
            else:
                ema_v.copy_(model_v)

model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)).to(dev)
ema = ModelEma(model, device="cpu")
model(torch.randn(6, 4, device=dev)).sum().backward()
ema.update(model)

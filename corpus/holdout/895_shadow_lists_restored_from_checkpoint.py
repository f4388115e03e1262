# source: mosaicml/composer PR#1003
# mechanism: [EMA / shadow copy] on resumption the shadow's tensor lists are taken as they stand in the checkpoint (loaded on the CPU); the trainer moves the model, nobody the shadow
# phase: batch end after resume; failing op: aten::add
# expect: raises
import io
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class EMA:
    def __init__(self, smoothing):
        self.smoothing, self.param_list = smoothing, None

    def batch_end(self, model):
        if self.param_list is None:
            self.param_list = [p.detach().clone() for p in model.parameters()]
        with torch.no_grad():
            for e, p in zip(self.param_list, model.parameters()):
                e.copy_(e * self.smoothing + (1.0 - self.smoothing) * p)  # RAISE

    def load_shadow_model(self, parameters):
        self.param_list = parameters  # ROOT

def fit(model, ema, batches, state=None):
    if state is not None:
        saved = torch.load(state, map_location="cpu")  # ALSO
        model.load_state_dict(saved["model"])
        ema.load_shadow_model(saved["ema"])  # ALSO
    model.to(dev)
    for x in batches:
        model(x.to(dev)).sum().backward()
        ema.batch_end(model)
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "ema": ema.param_list}, file)
    file.seek(0)
    return file

file = fit(nn.Linear(3, 2), EMA(0.9), [torch.ones(2, 3)])
fit(nn.Linear(3, 2), EMA(0.9), [torch.ones(2, 3)], file)

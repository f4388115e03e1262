# source: fadel/pytorch_ema PR#7 (after PR#6, state dict support)
# mechanism: [EMA / shadow copy] averages restored from a checkpoint that was loaded with map_location='cpu' are stored as they come; the parameters stay on CUDA
# phase: checkpoint load -> next update; failing op: aten::sub
# expect: raises
import copy
import io
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class MovingAverage:
    def __init__(self, params, decay):
        self.decay, self.params = decay, list(params)
        self.shadow = [p.detach().clone() for p in self.params]

    def update(self):
        for s, p in zip(self.shadow, self.params):
            diff = s - p.detach()  # RAISE
            s.sub_(diff.mul_(1 - self.decay))

    def state_dict(self):
        return {"decay": self.decay, "shadow": self.shadow}

    def load_state_dict(self, state):
        state = copy.deepcopy(state)
        self.decay = state["decay"]
        self.shadow = state["shadow"]  # ROOT

net = nn.Linear(3, 2).to(dev)
ema = MovingAverage(net.parameters(), 0.9)
ema.update()
ckpt = io.BytesIO()
torch.save({"net": net.state_dict(), "ema": ema.state_dict()}, ckpt)
ckpt.seek(0)
saved = torch.load(ckpt, map_location="cpu")  # ALSO
net.load_state_dict(saved["net"])
ema.load_state_dict(saved["ema"])
ema.update()

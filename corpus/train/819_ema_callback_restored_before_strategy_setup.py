# source: mllam/neural-lam PR#739 (device placement, raised on the earlier attempt PR#362)
# mechanism: [EMA / shadow copy] callback state is restored while the module is still on the CPU; load_state_dict places the average by the module's device of that moment, the module moves afterwards
# phase: first training batch after resume; failing op: aten::mul_ / add_ (cpu average, cuda parameter)
# expect: raises
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device("cuda", 0)


class EMACallback:
    def __init__(self, module, decay=0.99):
        self.module, self.decay, self.average = module, decay, None

    def load_state_dict(self, state):
        where = next(self.module.parameters()).device
        self.average = {k: v.to(where) for k, v in state["average"].items()}  # ROOT

    def on_train_batch_end(self):
        for k, p in self.module.named_parameters():
            self.average[k].mul_(self.decay).add_(p.detach(), alpha=1 - self.decay)  # RAISE  # ALSO

def fit(module, callback, batches, ckpt):
    module.load_state_dict(ckpt["module"])
    callback.load_state_dict(ckpt["callback"])  # ALSO
    module.to(dev)  # ALSO
    opt = torch.optim.SGD(module.parameters(), lr=0.1)
    for b in batches:
        F.mse_loss(module(b.to(dev)), torch.zeros(4, 2, device=dev)).backward()
        opt.step()
        callback.on_train_batch_end()

net = nn.Linear(3, 2)
weights = {k: v.to(dev) for k, v in net.state_dict().items()}
fit(net, EMACallback(net), [torch.randn(4, 3)], {"module": weights, "callback": {"average": weights}})

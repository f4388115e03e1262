# source: apple/pfl-research PR#76; pytorch/pytorch#7321, PR#53692
# mechanism: [optimizer state load] Adagrad allocates its accumulators when it is constructed; the model wrapper moves the model to the device afterwards, the parameters move in place, the accumulators do not
# phase: optimizer step; failing op: aten::addcmul_ (cpu accumulator, cuda gradient)
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class FederatedModel:
    def __init__(self, model, make_local_optimizer, make_central_optimizer, device):
        self.device = device
        self.central_optimizer = make_central_optimizer(model.parameters())  # ROOT
        self.model = model.to(device)  # ALSO
        self.make_local_optimizer = make_local_optimizer

    def local_update(self, x, y):
        before = [p.detach().clone() for p in self.model.parameters()]
        opt = self.make_local_optimizer(self.model.parameters())
        nn.functional.mse_loss(self.model(x.to(self.device)), y.to(self.device)).backward()
        opt.step()
        return before, [b - p.detach() for b, p in zip(before, self.model.parameters())]

    def apply_model_update(self, before, deltas):
        for p, b, d in zip(self.model.parameters(), before, deltas):
            p.data.copy_(b)
            p.grad = d
        self.central_optimizer.step()  # RAISE

fed = FederatedModel(nn.Linear(3, 1), lambda p: torch.optim.SGD(p, lr=0.1),
                     lambda p: torch.optim.Adagrad(p, lr=0.5, foreach=False), dev)
fed.apply_model_update(*fed.local_update(torch.randn(4, 3), torch.randn(4, 1)))

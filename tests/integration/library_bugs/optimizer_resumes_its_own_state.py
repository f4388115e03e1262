# source: facebookresearch/optimizers#3
# mechanism: an optimizer keeps preconditioners outside optimizer.state; on resume its load_state_dict takes the checkpoint's CPU tensors as they are
import os
import tempfile
import warnings
import lightning as L
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")


class KroneckerSGD(torch.optim.Optimizer):
    def __init__(self, params, lr=0.05, beta=0.9, momentum=0.9):
        super().__init__(params, dict(lr=lr, beta=beta, momentum=momentum))
        matrices = [p for g in self.param_groups for p in g["params"] if p.dim() == 2]
        self.factors = [torch.eye(p.shape[0], device=p.device) for p in matrices]
        self.index = {p: i for i, p in enumerate(matrices)}

    def state_dict(self):
        return {**super().state_dict(), "factors": self.factors}

    def load_state_dict(self, state_dict):
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "factors"})
        self.factors = list(state_dict["factors"])  # ROOT

    def precondition(self, i, grad, beta):
        self.factors[i] = beta * self.factors[i] + (1 - beta) * grad @ grad.T
        return torch.linalg.solve(self.factors[i], grad)

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                grad = self.precondition(self.index[p], p.grad, group["beta"]) if p in self.index else p.grad
                buf = self.state[p].setdefault("momentum", torch.zeros_like(p))
                buf.mul_(group["momentum"]).add_(grad)
                p.sub_(group["lr"] * buf)
        return loss


class Regressor(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))

    def training_step(self, batch, idx):
        x, y = batch
        return nn.functional.mse_loss(self.net(x), y)

    def configure_optimizers(self):
        return KroneckerSGD(self.parameters())


def trainer(root, epochs):
    return L.Trainer(accelerator="gpu", devices=1, max_epochs=epochs, logger=False, enable_checkpointing=False, default_root_dir=root,
                     enable_progress_bar=False, enable_model_summary=False)


torch.manual_seed(0)
x = torch.randn(32, 4)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8)
with tempfile.TemporaryDirectory() as root:
    first = trainer(root, epochs=1)
    first.fit(Regressor(), loader)
    path = os.path.join(root, "last.ckpt")
    first.save_checkpoint(path)
    trainer(root, epochs=2).fit(Regressor(), loader, ckpt_path=path)

# source: Lightning-AI/pytorch-lightning PR#554 (same order: allenai/allennlp#205)
# mechanism: [optimizer before move] trainer asks for the optimizers before it moves the model; Adagrad allocates its accumulators at construction, Adam only at the first step, so only Adagrad fails
# phase: first optimizer step; failing op: aten::addcmul_ (cpu sum, cuda grad)
# expect: raises
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device("cuda", 0)


class Regressor(nn.Module):
    def __init__(self, optimizer):
        super().__init__()
        self.net, self.optimizer = nn.Linear(3, 1), optimizer

    def configure_optimizers(self):
        if self.optimizer == "adam":
            return torch.optim.Adam(self.parameters(), foreach=False)
        return torch.optim.Adagrad(self.parameters(), foreach=False)

    def training_step(self, batch):
        x, y = batch
        return F.mse_loss(self.net(x), y)

class Trainer:
    def __init__(self, root_gpu):
        self.root_gpu = root_gpu

    def fit(self, model, loader):
        self.single_gpu_train(model, loader)

    def single_gpu_train(self, model, loader):
        self.optimizers = [model.configure_optimizers()]  # ROOT
        model.cuda(self.root_gpu)  # ALSO
        self.run_training_epoch(model, loader)

    def run_training_epoch(self, model, loader):
        for batch in loader:
            batch = [t.to(self.root_gpu) for t in batch]
            for optimizer in self.optimizers:
                optimizer.zero_grad()
                model.training_step(batch).backward()
                optimizer.step()  # RAISE

loader = [(torch.randn(4, 3), torch.randn(4, 1)) for _ in range(2)]
for name in ("adam", "adagrad"):
    Trainer(dev).fit(Regressor(name), loader)

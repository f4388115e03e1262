# source: skorch-dev/skorch#455
# mechanism: a scikit-style wrapper moves the module to its device on initialisation, but not the criterion and its class weights
# expect: raises
import torch
from torch import nn


class Dataset:
    def __init__(self, X, y):
        self.X, self.y = X, y

    def batches(self, size):
        for i in range(0, len(self.X), size):
            yield self.X[i:i + size], self.y[i:i + size]


def to_device(value, device):
    if isinstance(value, (tuple, list)):
        return type(value)(to_device(v, device) for v in value)
    return value.to(device)


class NeuralNet:
    prefixes = ("module", "criterion", "optimizer")

    def __init__(self, module, criterion=nn.MSELoss, lr=0.01, batch_size=8, max_epochs=2, device="cpu", **kwargs):
        self.module, self.criterion = module, criterion
        self.lr, self.batch_size, self.max_epochs, self.device = lr, batch_size, max_epochs, device
        self.kwargs = kwargs
        self.history = []

    def get_params_for(self, prefix):
        key = prefix + "__"
        return {k[len(key):]: v for k, v in self.kwargs.items() if k.startswith(key)}

    def initialize_module(self):
        self.module_ = self.module(**self.get_params_for("module")).to(self.device)
        return self

    def initialize_criterion(self):
        self.criterion_ = self.criterion(**self.get_params_for("criterion"))  # ROOT
        return self

    def initialize_optimizer(self):
        self.optimizer_ = torch.optim.SGD(self.module_.parameters(), lr=self.lr, **self.get_params_for("optimizer"))
        return self

    def initialize(self):
        return self.initialize_module().initialize_criterion().initialize_optimizer()

    def infer(self, x):
        return self.module_(to_device(x, self.device))

    def get_loss(self, y_pred, y_true):
        return self.criterion_(y_pred, to_device(y_true, self.device))  # RAISE

    def train_step(self, Xi, yi):
        self.module_.train()
        self.optimizer_.zero_grad()
        loss = self.get_loss(self.infer(Xi), yi)
        loss.backward()
        self.optimizer_.step()
        return loss.item()

    def fit(self, X, y):
        self.initialize()
        for _ in range(self.max_epochs):
            self.history += [self.train_step(*b) for b in Dataset(X, y).batches(self.batch_size)]
        return self

    @torch.no_grad()
    def predict(self, X):
        self.module_.eval()
        return torch.cat([self.infer(x).argmax(1).cpu() for x, _ in Dataset(X, X).batches(self.batch_size)])


class MLP(nn.Module):
    def __init__(self, units=10):
        super().__init__()
        self.seq = nn.Sequential(nn.Linear(6, units), nn.ReLU(), nn.Linear(units, 3))

    def forward(self, X):
        return self.seq(X)


def main():
    torch.manual_seed(0)
    X, y = torch.randn(20, 6), torch.randint(0, 3, (20,))
    counts = torch.bincount(y, minlength=3).float()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    net = NeuralNet(MLP, nn.CrossEntropyLoss, device=device, module__units=12,
                    criterion__weight=counts.sum() / counts.clamp(min=1),  # ALSO
                    optimizer__momentum=0.9)
    net.fit(X, y)
    print(net.history[-1], (net.predict(X) == y).float().mean().item())


if __name__ == "__main__":
    main()

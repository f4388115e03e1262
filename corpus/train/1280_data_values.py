# source: opendataval/opendataval#37
# mechanism: a metric function compares predictions of the model's device with labels that the evaluator keeps on the CPU
# expect: raises
import torch
from torch import nn


def accuracy(a, b):
    return (a.argmax(dim=1) == b.argmax(dim=1)).float().mean().item()  # RAISE # ROOT


def one_hot(labels, classes):
    return nn.functional.one_hot(labels, classes).float()


class ClassifierMLP(nn.Module):
    def __init__(self, in_dim, classes, hidden=10):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(in_dim, hidden), nn.ReLU(), nn.Linear(hidden, classes))

    @property
    def device(self):
        return next(self.parameters()).device

    def fit(self, x, y, weights=None, epochs=3, lr=0.05):
        x, y = x.to(self.device), y.to(self.device)
        optimizer = torch.optim.Adam(self.parameters(), lr=lr)
        for _ in range(epochs):
            loss = nn.functional.cross_entropy(self.net(x), y, reduction="none")
            if weights is not None:
                loss = loss * weights.to(self.device)
            optimizer.zero_grad()
            loss.mean().backward()
            optimizer.step()
        return self

    @torch.no_grad()
    def predict(self, x):
        return self.net(x.to(self.device)).softmax(-1)  # ALSO


class DataFetcher:
    def __init__(self, n=24, dim=5, classes=3, seed=0):
        g = torch.Generator().manual_seed(seed)
        x = torch.randn(n, dim, generator=g)
        y = one_hot(torch.randint(0, classes, (n,), generator=g), classes)
        self.train, self.valid = (x[:16], y[:16]), (x[16:], y[16:])


class DataEvaluator:
    def __init__(self, make_model, metric):
        self.make_model, self.metric = make_model, metric

    def input_data(self, x_train, y_train, x_valid, y_valid):
        self.x_train, self.y_train = x_train, y_train
        self.x_valid, self.y_valid = x_valid, y_valid
        return self


class LeaveBlockOut(DataEvaluator):
    def __init__(self, make_model, metric, block=8):
        super().__init__(make_model, metric)
        self.block = block

    def _performance(self, rows):
        model = self.make_model().fit(self.x_train[rows], self.y_train[rows])
        y_hat = model.predict(self.x_valid)  # ALSO
        return self.metric(y_hat, self.y_valid)  # ALSO

    def train_data_values(self):
        everything = torch.arange(len(self.x_train))
        base = self._performance(everything)
        values = torch.zeros(len(everything))
        for start in range(0, len(everything), self.block):
            block = (everything >= start) & (everything < start + self.block)
            values[block] = base - self._performance(everything[~block])
        return values


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    data = DataFetcher()
    evaluator = LeaveBlockOut(lambda: ClassifierMLP(5, 3).to(device), accuracy)
    print(evaluator.input_data(*data.train, *data.valid).train_data_values().tolist())


if __name__ == "__main__":
    main()

# source: catalyst-team/catalyst#1228
# mechanism: a callback moves its example batch to the CPU before it runs the model, which lives on the device of the runner
# expect: raises
import torch
from torch import nn


def any2device(value, device):
    if isinstance(value, dict):
        return {k: any2device(v, device) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)(any2device(v, device) for v in value)
    return value.to(device) if torch.is_tensor(value) else value


class Callback:
    def on_stage_start(self, runner):
        pass

    def on_batch_end(self, runner):
        pass

    def on_epoch_end(self, runner):
        pass


class LossMeter(Callback):
    def __init__(self):
        self.values = []

    def on_batch_end(self, runner):
        self.values.append(runner.batch_loss.item())


class ProfileCallback(Callback):
    """Keeps one example of what the model returns, for export checks."""

    def __init__(self, input_key, every=1):
        self.input_key = input_key
        self.every = every
        self.example = None

    def _example_output(self, model, batch):
        was_training = model.training
        model.eval()
        with torch.no_grad():
            out = model(batch[self.input_key])  # ALSO
        model.train(was_training)
        return out

    def on_epoch_end(self, runner):
        if runner.epoch % self.every == 0:
            model = runner.unwrap(runner.model)
            batch = any2device(runner.batch, "cpu")  # ROOT
            self.example = any2device(self._example_output(model, batch), "cpu")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.fc = nn.Linear(4 * 16, 3)

    def forward(self, x):
        return self.fc(torch.relu(self.conv(x)).flatten(1))  # RAISE


class Runner:
    def __init__(self, device):
        self.device = device

    @staticmethod
    def unwrap(model):
        return getattr(model, "module", model)

    def train(self, model, loader, criterion, callbacks, epochs=1):
        self.model = model.to(self.device)
        optimizer = torch.optim.Adam(self.model.parameters())
        for cb in callbacks:
            cb.on_stage_start(self)
        for self.epoch in range(epochs):
            for batch in loader:
                self.batch = any2device(batch, self.device)
                self.batch_loss = criterion(self.model(self.batch["features"]), self.batch["targets"])
                optimizer.zero_grad()
                self.batch_loss.backward()
                optimizer.step()
                for cb in callbacks:
                    cb.on_batch_end(self)
            for cb in callbacks:
                cb.on_epoch_end(self)


def main():
    torch.manual_seed(0)
    runner = Runner(torch.device("cuda" if torch.cuda.is_available() else "cpu"))
    loader = [{"features": torch.randn(4, 1, 4, 4), "targets": torch.randint(0, 3, (4,))} for _ in range(2)]
    meter, profile = LossMeter(), ProfileCallback("features")
    runner.train(Net(), loader, nn.CrossEntropyLoss(), [meter, profile])
    print(meter.values, profile.example.shape)


if __name__ == "__main__":
    main()

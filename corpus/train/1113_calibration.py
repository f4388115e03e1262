# source: intel/neural-compressor PR#2100
# mechanism: the calibration loop of the example gives the batches of the prepared dataloader to the model as they are, and the model is on the accelerator.
# expect: raises
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def get_model_device(model):
    for param in model.parameters():
        return param.device


def move_input_device(value, device):
    if isinstance(value, torch.Tensor):
        return value.to(device)
    if isinstance(value, dict):
        return {k: move_input_device(v, device) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(move_input_device(v, device) for v in value)
    return value


class MiniOPT(nn.Module):
    def __init__(self, vocab=50, dim=16, max_len=16):
        super().__init__()
        self.tokens = nn.Embedding(vocab, dim)
        self.positions = nn.Embedding(max_len, dim)
        self.fc1 = nn.Linear(dim, 32)
        self.fc2 = nn.Linear(32, dim)
        self.head = nn.Linear(dim, vocab)

    def forward(self, input_ids):
        device = self.tokens.weight.device
        pos = self.positions(torch.arange(input_ids.shape[1], device=device))
        x = self.tokens(input_ids) + pos  # RAISE
        return self.head(x + self.fc2(torch.relu(self.fc1(x))))


class MinMaxObserver:
    def __init__(self):
        self.low = self.high = None

    def __call__(self, module, inputs, output):
        low, high = output.min(), output.max()
        self.low = low if self.low is None else torch.minimum(self.low, low)
        self.high = high if self.high is None else torch.maximum(self.high, high)


def prepare(model):
    model.observers = {}
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            model.observers[name] = MinMaxObserver()
            module.register_forward_hook(model.observers[name])
    return model


def get_prepared_dataloader(count, length, batch_size=4):
    tokens = torch.randint(0, 50, (count, length))
    return DataLoader(TensorDataset(tokens), batch_size=batch_size)


@torch.no_grad()
def calib_func(prepared_model, dataloader):
    for batch in dataloader:
        prepared_model(*batch)  # ROOT


@torch.no_grad()
def evaluate(model, dataloader):
    device, total = get_model_device(model), 0.0
    for batch in dataloader:
        (ids,) = move_input_device(batch, device)
        logits = model(ids)[:, :-1].flatten(0, 1)
        total += nn.functional.cross_entropy(logits, ids[:, 1:].flatten()).item()
    return total / len(dataloader)


def main():
    torch.manual_seed(0)
    model = MiniOPT().to("cuda:0").eval()
    dataloader = get_prepared_dataloader(8, 10)
    print("before", evaluate(model, dataloader))
    prepared = prepare(model)
    calib_func(prepared, dataloader)
    print({n: (o.low.item(), o.high.item()) for n, o in prepared.observers.items()})


if __name__ == "__main__":
    main()

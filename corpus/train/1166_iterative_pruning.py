# source: VainF/Torch-Pruning#191
# mechanism: the example input of a pruning loop is made once for the device that the model had before its first validation
# expect: raises
import torch
from torch import nn


class ConvBN(nn.Module):
    def __init__(self, cin, cout, stride=1):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, 3, stride=stride, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(cout)

    def forward(self, x):
        return self.norm(self.conv(x)).relu()  # RAISE


class Detector(nn.Module):
    def __init__(self, width=8, classes=3):
        super().__init__()
        self.body = nn.Sequential(ConvBN(3, width, 2), ConvBN(width, width * 2, 2))
        self.head = nn.Conv2d(width * 2, classes, 1)

    @property
    def device(self):
        return next(self.parameters()).device

    def forward(self, x):
        return self.head(self.body(x)).amax((2, 3))


class Validator:
    def __init__(self, device, batches=2):
        self.device = device
        gen = torch.Generator().manual_seed(8)
        self.data = [
            (torch.rand(4, 3, 16, 16, generator=gen), torch.randint(0, 3, (4,), generator=gen)) for _ in range(batches)
        ]

    @torch.no_grad()
    def __call__(self, model):
        model.to(self.device).eval()
        hits = total = 0
        for images, labels in self.data:
            images, labels = images.to(self.device), labels.to(self.device)
            hits += (model(images).argmax(1) == labels).sum().item()
            total += len(labels)
        return hits / total


@torch.no_grad()
def count_ops_and_params(model, example_inputs):
    ops = []

    def record(module, inputs, output):
        ops.append(int((module.weight != 0).sum()) * output.shape[-1] * output.shape[-2])

    handles = [m.register_forward_hook(record) for m in model.modules() if isinstance(m, nn.Conv2d)]
    model.eval()
    model(example_inputs)  # ALSO
    for handle in handles:
        handle.remove()
    return sum(ops), sum(int((p != 0).sum()) for p in model.parameters())


class MagnitudePruner:
    def __init__(self, model, ratio):
        self.model = model
        self.ratio = ratio

    @torch.no_grad()
    def step(self):
        for module in self.model.modules():
            if isinstance(module, ConvBN):
                norms = module.conv.weight.flatten(1).norm(dim=1)
                keep = norms > norms.quantile(self.ratio)
                module.conv.weight.mul_(keep[:, None, None, None])


def prune(model, validator, iterations=3, final_ratio=0.5):
    example_inputs = torch.rand(1, 3, 16, 16).to(model.device)
    base_ops, base_params = count_ops_and_params(model, example_inputs)
    history = []
    for iteration in range(1, iterations + 1):
        MagnitudePruner(model, final_ratio * iteration / iterations).step()
        accuracy = validator(model)
        ops, params = count_ops_and_params(model, example_inputs)  # ROOT
        history.append((ops / base_ops, params / base_params, accuracy))
    return history


def main():
    torch.manual_seed(0)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    model = Detector()
    for ops, params, accuracy in prune(model, Validator(device)):
        print(f"ops {ops:.2f} params {params:.2f} map {accuracy:.2f}")


if __name__ == "__main__":
    main()

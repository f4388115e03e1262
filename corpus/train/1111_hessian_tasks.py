# source: ModelCloud/GPTQModel PR#3067
# mechanism: the mask of the tokens to keep of a calibration sample is made on the device of the inputs; a hook indexes with it an activation that lies on another GPU.
# needs: 2 GPUs
# expect: raises
import torch
from torch import nn


class SplitMLP(nn.Module):
    def __init__(self, dim=12):
        super().__init__()
        self.embed = nn.Embedding(40, dim)
        self.first = nn.Linear(dim, dim)
        self.second = nn.Linear(dim, dim)

    def place(self, front, back):
        self.embed.to(front)
        self.first.to(front)
        self.second.to(back)
        return self

    def forward(self, input_ids):
        h = torch.relu(self.first(self.embed(input_ids)))
        return self.second(h.to(self.second.weight.device))


class HessianTask:
    def __init__(self, linear):
        self.linear = linear
        width = linear.in_features
        self.hessian = torch.zeros(width, width, device=linear.weight.device)
        self.tokens = 0

    def add_batch(self, rows):
        rows = rows.float().to(self.hessian.device)
        self.hessian += rows.t() @ rows
        self.tokens += rows.shape[0]

    def quantize(self, damp=0.01):
        diag = self.hessian.diagonal() / max(self.tokens, 1)
        scale = self.linear.weight.abs().amax() / 7
        return ((self.linear.weight / scale).round() * scale * (1 + damp * diag)).detach()


class Capture:
    def __init__(self, model, names):
        self.tasks = {n: HessianTask(getattr(model, n)) for n in names}
        self.keep_mask = None
        self.handles = [getattr(model, n).register_forward_hook(self.hook(n)) for n in names]

    def set_batch(self, attention_mask):
        self.keep_mask = attention_mask.bool()  # ALSO

    def hook(self, name):
        def collect(module, inputs, output):
            for row, keep in zip(inputs[0], self.keep_mask):  # ALSO
                if not bool(keep.any()):
                    continue
                kept = row[keep]  # RAISE # ROOT
                self.tasks[name].add_batch(kept)
        return collect

    def close(self):
        for handle in self.handles:
            handle.remove()


def calibration_batches(count, device):
    for index in range(count):
        ids = torch.randint(0, 40, (2, 6), device=device)
        mask = torch.ones_like(ids)
        mask[0, 4 - index % 2 :] = 0
        yield ids, mask


@torch.no_grad()
def run_gptq(model, device):
    capture = Capture(model, ["first", "second"])
    for ids, mask in calibration_batches(3, device):
        capture.set_batch(mask)
        model(ids)
    capture.close()
    for name, task in capture.tasks.items():
        getattr(model, name).weight.data = task.quantize()
    return {n: t.tokens for n, t in capture.tasks.items()}


def main():
    torch.manual_seed(0)
    model = SplitMLP().place("cuda:0", "cuda:1").eval()
    print(run_gptq(model, torch.device("cuda:0")))


if __name__ == "__main__":
    main()

# source: https://github.com/meta-pytorch/captum/pull/1245
# mechanism: a generator makes the mask of each feature on the CPU, while the inputs that it hides are on the GPU
# phase: inference; aten::mul
# expect: raises
import torch

dev = torch.device("cuda", 0)


class Ablation:
    def __init__(self, model, features):
        self.model, self.features = model, features

    def groups(self, mask, at_once):
        first, last = int(mask.min()), int(mask.max()) + 1
        for start in range(first, last, at_once):
            numbers = torch.arange(start, min(start + at_once, last))  # ROOT
            yield numbers, numbers.view(-1, 1)  # ALSO

    def hide(self, inputs, mask, numbers):
        hidden = mask == numbers  # RAISE  # ALSO
        return inputs.unsqueeze(1) * ~hidden

    def attribute(self, inputs, mask):
        base = self.model(inputs)
        scores = torch.zeros_like(inputs)
        for numbers, column in self.groups(mask, at_once=2):
            changed = self.model(self.hide(inputs, mask, column))
            scores[:, numbers] = (base.unsqueeze(1) - changed).squeeze(-1)
        return scores


model = torch.nn.Linear(6, 1).to(dev)
inputs = torch.randn(3, 6, device=dev)
with torch.no_grad():
    Ablation(model, 6).attribute(inputs, torch.arange(6, device=dev).unsqueeze(0))

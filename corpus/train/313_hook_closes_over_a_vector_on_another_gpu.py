# source: https://github.com/science-of-finetuning/diffing-toolkit/pull/81
# mechanism: a forward hook adds a vector of its closure, which lies on the device asked for and not on the layer's
# phase: inference; aten::add
# expect: raises
# needs: 2 GPUs
import torch

first, second = torch.device("cuda", 0), torch.device("cuda", 1)


class Decoder(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(4))

    def spread(self, devices):
        for number, layer in enumerate(self.layers):
            layer.to(devices[number * len(devices) // len(self.layers)])
        return self

    def forward(self, hidden):
        for layer in self.layers:
            hidden = layer(hidden.to(layer.weight.device)).relu()
        return hidden


class Steering:
    def __init__(self, model, device):
        self.model, self.device = model, device

    def apply(self, number, direction, strength):
        vector = strength * direction.to(self.device)  # ROOT

        def add(module, inputs, output):
            return output + vector  # RAISE  # ALSO

        return self.model.layers[number].register_forward_hook(add)


model = Decoder(6).spread([first, second])
direction = torch.nn.functional.normalize(torch.randn(6), dim=0)
handle = Steering(model, first).apply(3, direction, strength=4.0)
with torch.no_grad():
    model(torch.randn(2, 6))
handle.remove()

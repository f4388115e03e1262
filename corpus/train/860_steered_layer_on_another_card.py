# source: science-of-finetuning/diffing-toolkit PR#81
# mechanism: [model-parallel hook] steering hook adds a direction to one layer's output; the direction is placed on the device given to the experiment, the layer was sharded to the other GPU
# phase: generation (forward hook); failing op: aten::add (cuda:1 activations, cuda:0 direction)
# expect: raises
# needs: 2 GPUs
import contextlib
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


d1 = torch.device("cuda", 1)
class Stack(nn.Module):
    def __init__(self, dim, placement):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(dim, dim).to(where) for where in placement)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x.to(layer.weight.device)).tanh()
        return x

class LatentSteering:
    def __init__(self, decoder, device):
        self.decoder, self.device = decoder, device

    @contextlib.contextmanager
    def apply(self, layer, latent, strength):
        direction = self.decoder[latent].to(self.device)  # ROOT
        direction = direction / direction.norm()
        def hook(mod, args, output):
            return output + strength * direction  # RAISE  # ALSO
        handle = layer.register_forward_hook(hook)
        try:
            yield
        finally:
            handle.remove()

model = Stack(5, [dev, dev, d1])
steering = LatentSteering(torch.randn(16, 5), dev)
prompt = torch.randn(2, 5)
with torch.no_grad():
    for index in (0, 2):
        with steering.apply(model.layers[index], latent=3, strength=4.0):
            model(prompt)

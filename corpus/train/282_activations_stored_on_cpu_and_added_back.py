# source: TransformerLensOrg/TransformerLens#246 #217, PR#250
# mechanism: activations are collected on the CPU to save memory; a hook then adds their difference to CUDA ones
# phase: forward; aten::add
# expect: raises
import torch

dev = torch.device("cuda", 0)


class Recorder:
    def __init__(self, model):
        self.store = {}
        self.handles = [
            layer.register_forward_hook(self.recording(name)) for name, layer in model.named_children()
        ]

    def recording(self, name):
        def hook(layer, args, output):
            self.store[name] = output.detach().mean(0).cpu()  # ROOT

        return hook

    def stop(self):
        for handle in self.handles:
            handle.remove()
        return self.store


def record(model, inputs):
    recorder = Recorder(model)
    model(inputs)
    return recorder.stop()


def steer(model, name, direction, strength):
    def hook(layer, args, output):
        return output + strength * direction  # RAISE  # ALSO

    return getattr(model, name).register_forward_hook(hook)


model = torch.nn.Sequential()
for name in ("embed", "middle", "top"):
    model.add_module(name, torch.nn.Linear(4, 4))
model.to(dev)
with torch.no_grad():
    happy, sad = (record(model, torch.randn(8, 4, device=dev)) for _ in range(2))
    steer(model, "middle", happy["middle"] - sad["middle"], strength=2.0)  # ALSO
    model(torch.randn(3, 4, device=dev))

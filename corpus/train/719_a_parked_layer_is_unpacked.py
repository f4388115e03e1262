# source: Nerogar/OneTrainer#1571, fix PR#1673 ('Dequantize against the scale on the weight's device')
# mechanism: [offload] layer offloading relocates weight and bias of quantized layers, the scale buffer stays on the train device; DoRA initialisation dequantizes a parked layer
# phase: adapter initialisation; failing op: aten::mul (cpu weight, cuda:0 scale)
# expect: raises
import torch
import torch.nn as nn

def dequantize(q, scale):
    return q.float() * scale  # RAISE  # ALSO

class LinearW8A8(nn.Module):
    def __init__(self, linear):
        super().__init__()
        self.register_buffer("scale", linear.weight.detach().abs().amax(dim=1, keepdim=True) / 127.0)
        quantized = (linear.weight.detach() / self.scale).round().to(torch.int8)
        self.weight, self.bias = nn.Parameter(quantized, requires_grad=False), linear.bias

    def unquantized_weight(self, dtype):
        return dequantize(self.weight.detach(), self.scale).to(dtype)  # ROOT

class LayerOffloadConductor:
    def __init__(self, layers, train_device, temp_device, fraction):
        self.layers, self.train_device, self.temp_device = layers, train_device, temp_device
        self.keep = len(layers) - int(len(layers) * fraction)

    def activate(self):
        for i, layer in enumerate(self.layers):
            layer.to(self.train_device)
            if i >= self.keep:
                for tensor in (layer.weight, layer.bias):  # ALSO
                    tensor.data = tensor.data.to(self.temp_device)

class DoRAModule(nn.Module):
    def __init__(self, orig_module, rank=2):
        super().__init__()
        self.down = nn.Parameter(torch.zeros(rank, orig_module.weight.shape[1]))
        weight = orig_module.unquantized_weight(torch.float32)
        self.dora_scale = nn.Parameter(weight.norm(dim=1, keepdim=True))

def start(layers, train_device):
    LayerOffloadConductor(layers, train_device, "cpu", 0.5).activate()
    return nn.ModuleList(DoRAModule(layer) for layer in layers)

start(nn.ModuleList(LinearW8A8(nn.Linear(4, 4)) for _ in range(4)), "cuda:0")

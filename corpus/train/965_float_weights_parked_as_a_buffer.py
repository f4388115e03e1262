# source: Xilinx/brevitas PR#1330 (GPFQ/Qronos: weight_orig = weight_orig.to(dev))
# mechanism: [quantized layer] a copy of the float weights is parked on the CPU between layers, the layer-wise update mixes it with the weights
# phase: post-training quantization; failing op: aten::mm
# expect: raises
# root: gpfq.py:single_layer_update: weight_orig = self.layer.weight_orig.data is followed by .to(weight.device)
import torch
import torch.nn as nn

dev = torch.device('cuda', 0)


class GPFQ:
    def __init__(self, layer):
        self.layer = layer
        if not hasattr(layer, "weight_orig"):
            layer.register_buffer("weight_orig", layer.weight.detach().clone().cpu())
        n = layer.in_features
        self.H = torch.zeros(n, n, device=layer.weight.device)
        self.G = torch.zeros(n, n, device=layer.weight.device)

    def update_batch(self, x_float, x_quant):
        self.H += x_quant.T @ x_quant
        self.G += x_float.T @ x_quant

    @torch.no_grad()
    def single_layer_update(self, scale=0.1):
        weight = self.layer.weight.data
        weight_orig = self.layer.weight_orig.data      # ROOT
        diag = self.H.diagonal() + 1e-6
        target = weight_orig @ self.G                  # RAISE  # ALSO
        for i in range(weight.shape[1]):
            rest = target[:, i] - weight @ self.H[:, i] + weight[:, i] * self.H[i, i]
            weight[:, i] = (rest / diag[i] / scale).round() * scale


layer = nn.Linear(3, 2).to(dev)
gpfq = GPFQ(layer)
x = torch.rand(4, 3, device=dev)
gpfq.update_batch(x, x.round())
gpfq.single_layer_update()

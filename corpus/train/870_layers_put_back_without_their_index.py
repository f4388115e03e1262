# source: vllm-project/compressed-tensors PR#384
# mechanism: [expert placement] compression pass remembers device.type only ('cuda'), so a layer of the second GPU is put back on the first
# phase: forward after compression; failing op: aten::linear / addmm (cuda:1 input, cuda:0 weight)
# expect: raises
# needs: 2 GPUs
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class Compressor:
    def pack(self, weight):
        scale = weight.abs().amax(1, keepdim=True) / 127
        return (weight / scale).round() * scale

    def compress(self, model):
        for layer in model:
            onloading = layer.weight.device.type  # ROOT
            layer.to("cpu")
            layer.weight.data = self.pack(layer.weight.data)
            layer.to(onloading)

stages = [dev, torch.device("cuda", 1)]
model = nn.ModuleList([nn.Linear(4, 4).to(s) for s in stages])
Compressor().compress(model)
h = torch.ones(2, 4)
for stage, layer in zip(stages, model):
    h = layer(h.to(stage))  # RAISE

# source: sgl-project/sglang PR#36510 (--cpu-offload-gb with GemmaRMSNorm)
# mechanism: [offload] the offloader parks parameters on the host but not the derived non-persistent buffer that the weight loader writes with out=
# phase: checkpoint load; failing op: aten::add.out (cpu self, cuda:0 out)
# expect: raises
import torch
import torch.nn as nn

class GemmaRMSNorm(nn.Module):
    def __init__(self, hidden_size, eps=1e-6):
        super().__init__()
        self.weight, self.variance_epsilon = nn.Parameter(torch.zeros(hidden_size)), eps
        self.register_buffer("gemma_weight", torch.ones(hidden_size), persistent=False)
        self.weight.weight_loader = self._weight_loader

    def _weight_loader(self, param, loaded_weight):
        param.data.copy_(loaded_weight)
        torch.add(param.data, 1.0, out=self.gemma_weight)  # ROOT # RAISE

    def forward(self, x):
        return nn.functional.rms_norm(x, x.shape[-1:], self.gemma_weight, self.variance_epsilon)

class DecoderLayer(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.input_layernorm, self.mlp = GemmaRMSNorm(hidden_size), nn.Linear(hidden_size, hidden_size, bias=False)

class OffloaderV1:
    def __init__(self, max_bytes):
        self.left = max_bytes

    def wrap(self, module):
        for param in module.parameters():
            if self.left >= param.data.nbytes:
                param.data, self.left = param.data.to("cpu"), self.left - param.data.nbytes
        return module

def load_weights(model, checkpoint):
    params = dict(model.named_parameters())
    for name, tensor in checkpoint:
        getattr(params[name], "weight_loader", lambda param, loaded: param.data.copy_(loaded))(params[name], tensor)

with torch.device("cuda:0"):
    layers = nn.ModuleList([OffloaderV1(1 << 10).wrap(DecoderLayer(4)) for _ in range(2)])
load_weights(layers, [("0.mlp.weight", torch.eye(4)), ("0.input_layernorm.weight", torch.full((4,), 0.1))])

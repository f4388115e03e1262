# source: kvcache-ai/ktransformers#963
# mechanism: [expert placement] placement rules send one module by name to the CPU; the model gets its token ids on the GPU
# phase: generation; failing op: aten::embedding (index_select)
# expect: raises
# root: default optimize rules of the model (no fix in the thread): token embedding placed on the CPU
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device('cuda', 0)


rules = {
    "embed": torch.device('cpu'),  # ROOT
    "experts": dev,
}
net = nn.ModuleDict({"embed": nn.Embedding(8, 4), "experts": nn.Linear(4, 4)})
for name, module in net.items():
    module.to(rules[name])
h = net["embed"](torch.tensor([[1, 5, 2]], device=dev))  # RAISE  # ALSO

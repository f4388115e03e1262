# source: NVIDIA/Model-Optimizer PR#910 (review of expert_token_count); follow-up PR#970
# mechanism: [expert placement] per-layer token counter of the calibration is allocated on the default GPU, MoE layers are spread over all GPUs
# phase: calibration forward; failing op: aten::add_ (cuda:0 vs cuda:1)
# expect: raises
# needs: 2 GPUs
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device("cuda", 0)


d1 = torch.device("cuda", 1)
class CountingMoe(nn.Module):
    def __init__(self, dim, num_experts, top_k=2):
        super().__init__()
        self.top_k, self.num_experts = top_k, num_experts
        self.gate = nn.Linear(dim, num_experts)
        self.experts = nn.ModuleList(nn.Linear(dim, dim) for _ in range(num_experts))
        self.expert_token_count = torch.zeros(num_experts, dtype=torch.long, device="cuda")  # ROOT
        self.gate.register_forward_hook(self.count)

    def count(self, mod, args, logits):
        picked = logits.topk(self.top_k, dim=-1).indices
        self.expert_token_count += F.one_hot(picked, self.num_experts).sum((0, 1))  # RAISE  # ALSO

    def forward(self, x):
        w = self.gate(x).softmax(-1)
        return sum(w[:, i, None] * e(x) for i, e in enumerate(self.experts))

layers = [CountingMoe(3, 4).to(dev), CountingMoe(3, 4).to(d1)]
x = torch.ones(5, 3, device=dev)
for layer in layers:
    x = layer(x.to(layer.gate.weight.device))

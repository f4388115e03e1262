# source: ROCm/ATOM PR#887 (point 2: expert_map / expert_mask not migrated to GPU)
# mechanism: [plain attribute tensor] the global-to-local expert table of expert parallelism comes from a helper and is kept as a plain attribute, so Module.to() skips it; CUDA top-k ids index it
# phase: forward; failing op: aten::index ('indices should be either on cpu or on the same device as the indexed tensor (cpu)')
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


def determine_expert_map(ep_size, ep_rank, global_num_experts):
    local = global_num_experts // ep_size
    expert_map = torch.full((global_num_experts,), -1, dtype=torch.long)
    expert_map[ep_rank * local:(ep_rank + 1) * local] = torch.arange(local)
    return local, expert_map


class FusedMoE(nn.Module):
    def __init__(self, num_experts, top_k, dim, ep_size=1, ep_rank=0):
        super().__init__()
        self.top_k, self.use_ep = top_k, ep_size > 1
        if self.use_ep:
            self.local_num_experts, self.expert_map = determine_expert_map(ep_size, ep_rank, num_experts)  # ROOT
        else:
            self.local_num_experts, self.expert_map = num_experts, None
        self.w13 = nn.Parameter(torch.randn(self.local_num_experts, dim, dim))

    def forward(self, x, router_logits):
        weights, topk_ids = router_logits.softmax(-1).topk(self.top_k, dim=-1)
        if self.use_ep:
            topk_ids = self.expert_map[topk_ids]  # RAISE  # ALSO
        out = torch.zeros_like(x)
        for expert in range(self.local_num_experts):
            scale = (weights * (topk_ids == expert)).sum(-1, keepdim=True)
            out += scale * (x @ self.w13[expert]).relu()
        return out


class MoEBlock(nn.Module):
    def __init__(self, dim, num_experts, **parallel):
        super().__init__()
        self.gate = nn.Linear(dim, num_experts, bias=False)
        self.experts = FusedMoE(num_experts, 2, dim, **parallel)

    def forward(self, x):
        return x + self.experts(x, self.gate(x))


block = MoEBlock(8, 4, ep_size=2, ep_rank=1).to(dev)
block(torch.randn(3, 8, device=dev))

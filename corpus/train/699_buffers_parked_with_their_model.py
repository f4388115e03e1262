# source: NVIDIA-NeMo/RL PR#1930 (#1922)
# mechanism: [offload, order of calls] policy worker with CPU offload parks the whole model, buffers included; sharding hooks bring parameters back, buffers return only in prepare_for_training(), and validation before the first step runs without it
# phase: DPO validation at start, reference log-probs; failing op: aten::add (gate scores + expert bias)
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class MoEBlock(nn.Module):
    def __init__(self, dim=8, n=4):
        super().__init__()
        self.gate = nn.Linear(dim, n, bias=False)
        self.register_buffer("expert_bias", torch.zeros(n))
        self.experts = nn.ModuleList(nn.Linear(dim, dim) for _ in range(n))

    def forward(self, x):
        scores = self.gate(x).sigmoid()
        top = (scores + self.expert_bias).topk(2, dim=-1).indices  # RAISE
        weights = torch.zeros_like(scores).scatter(-1, top, scores.gather(-1, top))
        return x + sum(weights[..., i:i + 1] * e(x) for i, e in enumerate(self.experts))

def gather_params(module, args):
    for p in module.parameters(recurse=False):  # ALSO
        p.data = p.data.to(dev)

class PolicyWorker:
    def __init__(self, cpu_offload=True):
        self.cpu_offload = cpu_offload
        self.model = nn.Sequential(nn.Linear(6, 8), MoEBlock(), nn.Linear(8, 6)).to(dev)
        for m in self.model.modules():
            m.register_forward_pre_hook(gather_params)
        if cpu_offload:
            self.model = self.model.to("cpu")  # ROOT

    def prepare_for_training(self):
        for m in self.model.modules():
            for name, buf in m.named_buffers(recurse=False):
                setattr(m, name, buf.to(dev))
        self.model.train()

    def reference_logprobs(self, batch):
        with torch.no_grad():
            return self.model(batch.to(dev)).log_softmax(-1).amax(-1)

def validate(policy, batches):
    return torch.stack([policy.reference_logprobs(b).mean() for b in batches]).mean()

def dpo_train(policy, train, val, val_at_start=True):
    if val_at_start:
        validate(policy, val)  # ALSO
    for batch in train:
        policy.prepare_for_training()
        policy.model(batch.to(dev)).square().mean()

dpo_train(PolicyWorker(), [torch.randn(2, 6)], [torch.randn(3, 6)])

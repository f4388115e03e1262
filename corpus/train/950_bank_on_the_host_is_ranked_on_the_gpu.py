# source: salesforce/BLIP#158 (answer: topk_idx->topk_idx.cpu())
# mechanism: [index tensor] feature bank gathered on the host to save memory; the similarity's top-k, computed on CUDA, picks its rows
# phase: evaluation; failing op: aten::index ('indices should be either on cpu or on the same device as the indexed tensor (cpu)')
# expect: raises
# root: train_retrieval.py:evaluation: topk_idx used without .cpu()
import torch

dev = torch.device('cuda', 0)


feats = torch.randn(6, 4)
bank = torch.cat([torch.randn(3, 5, 4, device=dev).cpu() for _ in range(2)])
sims = torch.randn(2, 4, device=dev) @ feats.to(dev).t()
for sim in sims:
    topk_sim, topk_idx = sim.topk(k=3, dim=0)  # ROOT
    states = bank[topk_idx].to(dev)  # RAISE  # ALSO
    score = states.mean((1, 2)) + topk_sim

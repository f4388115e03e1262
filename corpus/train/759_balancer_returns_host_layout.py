# source: vllm-project/vllm-ascend PR#16000 (review: rebalance_experts returns a CPU tensor instead of keeping the device of old_global_expert_indices)
# mechanism: [expert placement] placement policy works in NumPy on the host and hands its new physical-to-logical table back on CPU; the engine compares it with the one in use
# phase: expert rebalancing; failing op: aten::ne
# expect: raises
import torch

dev = torch.device("cuda", 0)


class GreedyPolicy:
    def rebalance_experts(self, load, old_indices):
        table = old_indices.cpu().numpy().copy()
        for row, heat in zip(table, load.cpu().numpy()):
            row[heat[row].argmin()] = heat.argmax()
        return torch.from_numpy(table)  # ROOT

class ExpertBalancer:
    def __init__(self, layers, slots, policy):
        self.policy = policy
        self.physical_to_logical = torch.arange(slots, device=dev).repeat(layers, 1)
        self.load = torch.zeros(layers, slots, device=dev)

    def record(self, layer, topk_ids):
        self.load[layer] += torch.bincount(topk_ids.flatten(), minlength=self.load.shape[1])

    def step(self):
        new = self.policy.rebalance_experts(self.load, self.physical_to_logical)  # ALSO
        changed = (new != self.physical_to_logical).any(dim=1)  # RAISE
        self.physical_to_logical = new
        return changed.nonzero().flatten()

eb = ExpertBalancer(2, 4, GreedyPolicy())
eb.record(0, torch.tensor([[0, 2], [2, 3]], device=dev))
eb.step()

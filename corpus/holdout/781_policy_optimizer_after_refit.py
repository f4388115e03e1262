# source: NVIDIA-NeMo/RL#1869, fix PR#2239
# mechanism: [optimizer state load] worker parks the optimizer state on the CPU before the weights are sent out and brings it back only under a condition that is narrower than the one for parking
# phase: second training step; failing op: aten::lerp_
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class PolicyWorker:
    def __init__(self, colocated):
        self.colocated = colocated
        self.model = nn.Linear(4, 3).to(dev)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), foreach=False)

    def move_optimizer(self, device):
        for state in self.optimizer.state.values():
            state.update({k: v.to(device) for k, v in state.items() if k != "step"})

    def prepare_for_training(self):
        self.model.to(dev).train()
        if self.colocated:  # ROOT
            self.move_optimizer(dev)

    def train(self, obs):
        self.optimizer.zero_grad()
        self.model(obs.to(dev)).logsumexp(-1).mean().backward()
        self.optimizer.step()  # RAISE

    def offload_before_refit(self):
        self.move_optimizer("cpu")  # ALSO

for worker in (PolicyWorker(True), PolicyWorker(False)):
    for step in range(2):
        worker.prepare_for_training()
        worker.train(torch.randn(8, 4))
        worker.offload_before_refit()

# source: hirofumi0810/neural_sp PR#329 (resuming multi-GPU training)
# mechanism: [optimizer state load] loader of checkpoints sends the restored state to the GPU itself with .cuda(), before the process has chosen its card; load_state_dict had already put it where the parameters are
# phase: resume -> optimizer step; failing op: aten::mul_ / add_ (cuda:0 momentum, cuda:1 gradient)
# expect: raises
# needs: 2 GPUs
import copy
import torch
import torch.nn as nn


class LRScheduler:
    def __init__(self, optimizer):
        self.optimizer, self.n_steps = optimizer, 0

    def step(self):
        self.n_steps += 1
        self.optimizer.param_groups[0]["lr"] = 0.1 * min(1.0, self.n_steps / 4)
        self.optimizer.step()  # RAISE

def load_checkpoint(saved, model, scheduler):
    model.load_state_dict(saved["model"])
    scheduler.optimizer.load_state_dict(saved["optimizer"])
    scheduler.n_steps = saved["n_steps"]
    for state in scheduler.optimizer.state.values():
        for key, value in state.items():
            if torch.is_tensor(value):
                state[key] = value.cuda()  # ROOT

def train(local_rank, saved=None, steps=2):
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).cuda(local_rank)  # ALSO
    scheduler = LRScheduler(torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=False))
    if saved is not None:
        load_checkpoint(saved, model, scheduler)  # ALSO
    with torch.cuda.device(local_rank):
        for _ in range(steps):
            scheduler.optimizer.zero_grad()
            model(torch.randn(3, 4).cuda()).pow(2).mean().backward()
            scheduler.step()
    state = {"model": model.state_dict(), "optimizer": scheduler.optimizer.state_dict()}
    return copy.deepcopy({**state, "n_steps": scheduler.n_steps})

for rank in range(2):
    checkpoint = train(rank)
    train(rank, checkpoint)

# source: reiniscimurs/DRL-robot-navigation#142
# mechanism: rewards and masks come out of a CPU replay buffer, the target value from a CUDA critic
# phase: loss; aten::mul
# expect: raises
import torch

dev = torch.device("cuda", 0)

critic = torch.nn.Linear(3, 1).to(dev)
batch = {"next": torch.randn(4, 3), "reward": torch.randn(4, 1), "done": torch.zeros(4, 1)}  # ROOT
with torch.no_grad():
    value = critic(batch["next"].to(dev))
    target = batch["reward"] + 0.99 * (1 - batch["done"]) * value  # RAISE  # ALSO

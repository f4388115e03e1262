# source: OpenRLHF/OpenRLHF#245
# mechanism: [EMA / shadow copy] EMA model is prepared onto the GPU like the actor, but the trainer still asks for the average to be taken on the CPU: the actor's weights are fetched there, the EMA's are not
# phase: after optimizer step; failing op: aten::add (cpu vs cuda)
# expect: raises
import copy
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class Strategy:
    def prepare(self, *models):
        return [m.to(dev) for m in models]

    def moving_average(self, model, model_ema, beta=0.992, device="cpu"):
        with torch.no_grad():
            for p, p_ema in zip(model.parameters(), model_ema.parameters()):
                data = p.data.to(device)  # ALSO
                p_ema.data.copy_((1 - beta) * data + beta * p_ema.data)  # RAISE  # ALSO

class PPOTrainer:
    def __init__(self, strategy, actor):
        self.strategy = strategy
        self.actor, self.ema_model = strategy.prepare(actor, copy.deepcopy(actor))
        self.opt = torch.optim.SGD(self.actor.parameters(), lr=0.1)

    def training_step(self, x):
        self.actor(x.to(dev)).pow(2).mean().backward()
        self.opt.step()
        self.strategy.moving_average(self.actor, self.ema_model, 0.9, "cpu")  # ROOT

PPOTrainer(Strategy(), nn.Linear(4, 2)).training_step(torch.randn(3, 4))

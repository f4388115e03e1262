"""DeepSpeed's mixture of experts: four experts, divided among two ranks. With `astray` a line of the program takes one of
the second rank's to the other's GPU, and the engine is left out: it would refuse to join the gradients."""

import sys

import deepspeed
import torch
from clean_parts import LOCAL_RANK, STEPS, Classifier, evaluate, make_batches
from deepspeed.moe.layer import MoE
from deepspeed.moe.utils import split_params_into_different_moe_groups_for_optimizer

WORDS = sys.argv[3:]


class Expert(torch.nn.Module):
    """Works wherever its weights are."""

    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(24, 32), torch.nn.Linear(32, 24)

    def forward(self, x):
        here = self.up.weight.device
        return self.down(torch.relu(self.up(x.to(here)))).to(x.device)


class Mixture(torch.nn.Module):
    """Takes the place of a layer."""

    def __init__(self):
        super().__init__()
        self.moe = MoE(24, Expert(), num_experts=4, ep_size=2, k=1)

    def forward(self, x):
        return x + self.moe(x)[0]


def main():
    torch.cuda.set_device(LOCAL_RANK)
    deepspeed.init_distributed()
    torch.manual_seed(0)
    model = Classifier()
    model.layers[1] = Mixture()
    groups = split_params_into_different_moe_groups_for_optimizer(
        {"params": list(model.parameters()), "name": "parameters"})
    optimizer = torch.optim.AdamW(groups, lr=1e-3)
    configuration = {"train_micro_batch_size_per_gpu": 2, "zero_allow_untested_optimizer": True}
    engine, _, _, _ = deepspeed.initialize(model=model, optimizer=optimizer, config=configuration)
    if "astray" in WORDS and LOCAL_RANK == 1:
        model.layers[1].moe.deepspeed_moe.experts.deepspeed_experts[1].to("cuda:0")
    for step, (tokens, targets) in enumerate(make_batches(seed=LOCAL_RANK)):
        works = model if WORDS else engine
        loss = works(tokens.to(engine.device), targets.to(engine.device))
        if WORDS:
            loss.backward()
        else:
            engine.backward(loss)
            engine.step()
        if step == STEPS // 2:
            evaluate(engine, engine.device)
    print(f"evaluation: {evaluate(engine, engine.device):.3f}")
    torch.distributed.destroy_process_group()


main()

# source: lanl/hippynn PR#12; PyTorch's forum knows the same of checkpoints loaded with map_location
# mechanism: a checkpoint holds the CPU generator's state; loading all of it to the GPU takes that along
# phase: checkpoint; no operator: torch.Generator.set_state
# expect: raises
import io

import torch

dev = torch.device("cuda", 0)


class Run:
    def __init__(self, width):
        self.model = torch.nn.Linear(width, 1).to(dev)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def step(self, width):
        noisy = torch.randn(4, width).to(dev)
        self.optimizer.zero_grad()
        self.model(noisy).square().mean().backward()
        self.optimizer.step()

    def save(self, file):
        state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
        torch.save(state | {"random": torch.get_rng_state()}, file)

    def resume(self, file):
        state = torch.load(file, map_location=dev)  # ROOT
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["random"])  # RAISE  # ALSO


run, file = Run(3), io.BytesIO()
run.step(3)
run.save(file)
file.seek(0)
run.resume(file)

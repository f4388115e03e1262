# source: pytorch/ignite#2076, fix PR#2081
# mechanism: [generator device] checkpoint is loaded onto the training device as a whole; with it goes the saved state of the CPU's random generator, which can only be set from a CPU tensor
# phase: resume, before the first iteration; failing op: torch.set_rng_state ('RNG state must be a torch.ByteTensor')
# expect: raises
import io
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class DeterministicEngine:
    def __init__(self, process):
        self.process, self.iteration, self.rng_states = process, 0, None

    def state_dict(self):
        return {"iteration": self.iteration, "rng_states": [torch.get_rng_state()]}

    def load_state_dict(self, state):
        self.iteration, self.rng_states = state["iteration"], state["rng_states"]  # ALSO

    def run(self, batches):
        if self.rng_states is not None:
            torch.set_rng_state(self.rng_states[0])  # RAISE  # ALSO
        for batch in batches[self.iteration:]:
            self.process(batch[torch.randperm(len(batch))])
            self.iteration += 1

def save(objects):
    file = io.BytesIO()
    torch.save({k: o.state_dict() for k, o in objects.items()}, file)
    return file.getvalue()

def resume(objects, saved, device):
    checkpoint = torch.load(io.BytesIO(saved), map_location=device)  # ROOT
    for k, o in objects.items():
        o.load_state_dict(checkpoint[k])

model = nn.Linear(3, 1).to(dev)
trainer = DeterministicEngine(lambda b: model(b.to(dev)).sum().backward())
data = [torch.randn(4, 3) for _ in range(4)]
trainer.run(data[:2])
resume({"model": model, "trainer": trainer}, save({"model": model, "trainer": trainer}), dev)
trainer.run(data)

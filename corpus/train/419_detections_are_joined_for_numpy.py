# source: neuro-ml/thunder#49
# mechanism: entries of a dictionary of lists are filled in step, one of them on the GPU; what joins it goes to NumPy unnamed
# phase: evaluation; Tensor.numpy
# expect: raises
import torch
from torch import nn


class Validator:
    def __init__(self, model):
        self.model = model
        self.outputs = {"scores": [], "images": []}

    def step(self, batch):
        return self.model(batch["pixels"].to("cuda")).sigmoid().amax(dim=1)  # ALSO

    @torch.no_grad()
    def run(self, batches):
        kept = self.outputs
        k = 0
        while k < len(batches):
            number = batches[k]["number"].cpu()
            kept["images"].append(number)
            kept["scores"].append(self.step(batches[k]))  # ROOT
            k += 1
        images = torch.cat(kept["images"]).numpy()
        scores = torch.cat(kept["scores"]).numpy()  # RAISE  # ALSO
        return dict(zip(images, scores))


validator = Validator(nn.Linear(4, 3).to("cuda"))
validator.run([{"pixels": torch.rand(5, 4), "number": torch.arange(5, device="cuda")} for _ in range(3)])

# source: hugoycj/NeuralBaker PR#1 ('dataset.all_images are on cpu, while index is on cuda')
# mechanism: [data not moved] the training split is moved to the GPU as a whole, the validation split is not; the batch index is on CUDA
# phase: validation; failing op: aten::index ('indices should be either on cpu or on the same device as the indexed tensor (cpu)')
# expect: raises
# root: validation dataset: all_images left on the CPU
import torch

dev = torch.device('cuda', 0)


class Views:
    def __init__(self, n):
        self.images = torch.rand(n, 4, 4, 3)  # ROOT

def preprocess(dataset, batch):
    return dataset.images[batch["index"]].view(-1, 3)  # RAISE  # ALSO

train, val = Views(4), Views(2)
train.images = train.images.to(dev)  # ALSO
for split in (train, val):
    preprocess(split, {"index": torch.tensor([1], device=dev)})

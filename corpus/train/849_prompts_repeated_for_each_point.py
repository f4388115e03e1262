# source: pytorch/pytorch#107591 (repeat count of SAM's image embeddings)
# mechanism: [index tensor] number of repetitions is a tensor on the CPU; repeat() takes such a count, repeat_interleave() turns it into an index for index_select, which must be on the tensor's device
# phase: forward (mask decoder); failing op: aten::repeat_interleave / index_select (argument index)
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class PromptEncoder(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.point = nn.Linear(2, dim)
        self.missing = nn.Parameter(torch.zeros(1, dim, 1, 1))

    def forward(self, points, size):
        counts = torch.tensor([len(p) for p in points])  # ROOT
        sparse = self.point(torch.cat(points))
        return sparse, self.missing.repeat(counts.sum(), 1, size, size), counts  # ALSO

class MaskDecoder(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.conv = nn.Conv2d(dim, dim, 1)

    def forward(self, image, sparse, dense, counts):
        src = image.repeat_interleave(counts, dim=0)  # RAISE  # ALSO
        return (self.conv(src + dense) * sparse[:, :, None, None]).sum(1)

class Segmenter(nn.Module):
    def __init__(self, dim=6):
        super().__init__()
        self.vision = nn.Conv2d(3, dim, 3, padding=1)
        self.prompt, self.decoder = PromptEncoder(dim), MaskDecoder(dim)

    def forward(self, pixels, points):
        image = self.vision(pixels)
        sparse, dense, counts = self.prompt(points, image.shape[-1])
        return self.decoder(image, sparse, dense, counts)  # ALSO

model = Segmenter().to(dev)
points = [torch.rand(3, 2, device=dev), torch.rand(1, 2, device=dev)]
model(torch.randn(2, 3, 8, 8, device=dev), points)

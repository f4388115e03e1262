# source: NVIDIA/TensorRT-LLM PR#8070 (nvbugs 5549081, 'Fix device id assignment for some vision models')
# mechanism: [expert placement] vision encoder takes the global rank for a device index; the language model follows the current device of the process
# phase: forward; failing op: aten::cat (cuda:1 and cuda:0)
# expect: raises
# needs: 2 GPUs
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class Mapping:
    def __init__(self, rank, gpus_per_node):
        self.rank, self.local_rank = rank, rank % gpus_per_node

class VisionEncoder:
    def __init__(self, mapping, width):
        self.device = f"cuda:{mapping.rank}"  # ROOT
        self.patch = nn.Linear(6, width).to(self.device)

    def encode(self, pixels):
        return self.patch(pixels.to(self.device)).relu()

class MultimodalModel(nn.Module):
    def __init__(self, mapping, width=4):
        super().__init__()
        self.vision = VisionEncoder(mapping, width)
        self.embed, self.head = nn.Embedding(8, width), nn.Linear(width, 8)

    def forward(self, ids, pixels):
        h = self.embed(ids)
        h = torch.cat([self.vision.encode(pixels), h], dim=1)  # RAISE
        return self.head(h)

mapping = Mapping(rank=1, gpus_per_node=1)
model = MultimodalModel(mapping).to(torch.device('cuda', mapping.local_rank))
model(torch.tensor([[1, 2, 3]], device=dev), torch.randn(1, 2, 6))

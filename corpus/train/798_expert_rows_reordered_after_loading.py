# source: NVIDIA/TensorRT-LLM PR#18581 (review of the MoE weight transform: Tensor.cuda() takes the current device)
# mechanism: [expert placement] row order is made where the expert stack lives, cuda:1; each expert is brought to "the GPU" with .cuda(), which is the current device, cuda:0
# phase: weight loading; failing op: aten::index ('indices should be either on cpu or on the same device as the indexed tensor (cuda:0)')
# expect: raises
# needs: 2 GPUs
import torch

dev = torch.device("cuda", 0)
d1 = torch.device("cuda", 1)


class GatedExpertWeights:
    def __init__(self, weights):
        self.weights = weights

    def row_order(self):
        rows = torch.arange(self.weights.shape[1], device=self.weights.device)
        return rows.view(2, -1).t().reshape(-1)

    def prepare(self, weight, order):
        return weight[order].contiguous()  # RAISE  # ALSO

    def transform(self):
        order = self.row_order()
        done = []
        for expert in self.weights:
            expert = expert.cuda()  # ROOT
            done.append(self.prepare(expert, order).to(self.weights.device))  # ALSO
        self.weights = torch.stack(done)


for where in (torch.device('cpu'), dev, d1):
    stack = GatedExpertWeights(torch.randn(3, 8, 4, device=where))
    stack.transform()

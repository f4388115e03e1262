# source: axolotl-ai-cloud/axolotl PR#3995; hiyouga/LlamaFactory PR#10828
# mechanism: [custom autograd Function] offloading checkpoint Function keeps its input on the CPU and restores it to a fixed device; a block that lives on another one is recomputed with it
# phase: backward; failing op: aten::linear / addmm in the recomputation
# expect: raises
# needs: 2 GPUs
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


d1 = torch.device("cuda", 1)
class OffloadedCheckpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, block, hidden):
        ctx.save_for_backward(hidden.to("cpu"))
        ctx.block = block
        with torch.no_grad():
            return block(hidden)

    @staticmethod
    def backward(ctx, grad):
        (hidden,) = ctx.saved_tensors
        hidden = hidden.to(dev).detach().requires_grad_()  # ROOT
        with torch.enable_grad():
            out = ctx.block(hidden)
        torch.autograd.backward(out, grad)
        return None, hidden.grad

class Block(nn.Module):
    def __init__(self, device):
        super().__init__()
        self.fc, self.device = nn.Linear(4, 4, device=device), device

    def forward(self, x):
        return self.fc(x).relu() + x  # RAISE

h = torch.randn(2, 4, device=dev, requires_grad=True)
for block in (Block(dev), Block(d1)):
    h = OffloadedCheckpoint.apply(block, h.to(block.device))
h.sum().backward()

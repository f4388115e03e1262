# source: learning-at-home/hivemind PR#626
# mechanism: [expert placement] experts live on another host, so inputs are kept on the CPU for them; the list of rows that answered is kept on the GPU and indexes those CPU copies in backward
# phase: backward; failing op: aten::index ('indices should be either on cpu or on the same device as the indexed tensor (cpu)')
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class CallMany(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, experts, answered):
        host = x.detach().cpu()
        replies = torch.stack([experts[i](host[i]) for i in answered]).detach()
        rows = torch.as_tensor(answered, device=x.device)  # ROOT
        out = torch.zeros_like(x)
        out[rows] = replies.to(x.device)
        ctx.save_for_backward(rows, host)  # ALSO
        ctx.experts = experts
        return out

    @staticmethod
    def backward(ctx, g):
        rows, host = ctx.saved_tensors
        inputs, grads = host[rows], g.cpu()  # RAISE  # ALSO
        back = torch.zeros_like(grads)
        for i, x in zip(rows.tolist(), inputs):
            back[i] = grads[i] @ ctx.experts[i].weight
        return back.to(g.device), None, None

experts = [nn.Linear(3, 3) for _ in range(4)]
x = torch.randn(4, 3, device=dev, requires_grad=True)
y = CallMany.apply(x, experts, [0, 2, 3])
y.sum().backward()

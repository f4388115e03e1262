# source: PythonOT/POT#351
# mechanism: a solver works on the CPU and its gradients are handed to autograd by a custom function that returns them on the CPU for an input on the GPU
# expect: raises
import torch
from torch import nn
from torch.autograd import Function


class ValFunction(Function):
    @staticmethod
    def forward(ctx, val, grads, *inputs):
        ctx.grads = grads
        return val

    @staticmethod
    def backward(ctx, grad_output):
        return (None, None) + tuple(ctx.grads)  # ALSO


class TorchBackend:
    def set_gradients(self, val, inputs, grads):
        return ValFunction.apply(val, grads, *inputs)

    def to_numpy(self, *tensors):
        return tuple(t.detach().cpu().double() for t in tensors)

    def from_numpy(self, value, type_as=None):
        if type_as is None:
            return value
        return value.to(dtype=type_as.dtype, device=type_as.device)


def sinkhorn_plan(cost, p, q, reg=0.1, iterations=30):
    kernel = torch.exp(-cost / reg)
    u = torch.ones_like(p)
    for _ in range(iterations):
        v = q / (kernel.t() @ u + 1e-12)
        u = p / (kernel @ v + 1e-12)
    return u[:, None] * kernel * v[None]


def gw_solve(c1, c2, p, q, rounds=3):
    plan = p[:, None] * q[None]
    for _ in range(rounds):
        const = (c1 ** 2 @ p)[:, None] + (c2 ** 2 @ q)[None]
        cost = const - 2 * c1 @ plan @ c2.t()
        plan = sinkhorn_plan(cost / cost.abs().max(), p, q)
    return plan, (cost * plan).sum()


def gromov_wasserstein2(c1, c2, p, q):
    nx = TorchBackend()
    c1_np, c2_np, p_np, q_np = nx.to_numpy(c1, c2, p, q)
    plan, value = gw_solve(c1_np, c2_np, p_np, q_np)
    gc1 = 2 * c1_np * (p_np[:, None] * p_np[None]) - 2 * plan @ c2_np @ plan.t()
    gc2 = 2 * c2_np * (q_np[:, None] * q_np[None]) - 2 * plan.t() @ c1_np @ plan
    val = nx.from_numpy(value, type_as=c1)
    gc1, gc2 = (nx.from_numpy(g.float()) for g in (gc1, gc2))  # ROOT
    return nx.set_gradients(val, (c1, c2), (gc1, gc2))  # ALSO


class GraphTemplate(nn.Module):
    def __init__(self, nodes):
        super().__init__()
        self.raw = nn.Parameter(torch.randn(nodes, nodes) * 0.1)
        self.register_buffer("weights", torch.full((nodes,), 1.0 / nodes))

    def adjacency(self):
        return torch.sigmoid(self.raw + self.raw.t())


def fit(template, graph, weights, steps, lr):
    optimizer = torch.optim.SGD(template.parameters(), lr=lr)
    for _ in range(steps):
        c1 = template.adjacency()
        loss = gromov_wasserstein2(c1, graph, template.weights, weights)
        loss = loss + 1e-3 * (c1 ** 2).sum()
        optimizer.zero_grad()
        loss.backward()  # RAISE
        optimizer.step()
    return loss.item()


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    template = GraphTemplate(4).to(device)
    graph = (torch.rand(6, 6) > 0.5).float()
    graph = ((graph + graph.t()) / 2).to(device)
    weights = torch.full((6,), 1.0 / 6, device=device)
    print("loss %.4f" % fit(template, graph, weights, steps=3, lr=0.5))


if __name__ == "__main__":
    main()

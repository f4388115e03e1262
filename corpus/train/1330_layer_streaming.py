# source: huggingface/transformers#43131
# mechanism: the offloader streams a block's parameters to the GPU before its forward, and the block's buffers, which were offloaded with it, are not in its index
# expect: raises
import torch
from torch import nn


class Router(nn.Module):
    def __init__(self, dim, experts):
        super().__init__()
        self.gate = nn.Linear(dim, experts, bias=False)
        self.register_buffer("score_bias", torch.zeros(experts))

    def forward(self, hidden):
        scores = torch.sigmoid(self.gate(hidden))
        chosen = (scores + self.score_bias).topk(1, dim=-1).indices  # RAISE
        return chosen, scores.gather(-1, chosen)


class MoEBlock(nn.Module):
    def __init__(self, dim, experts=3):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.router = Router(dim, experts)
        self.experts = nn.ModuleList(nn.Linear(dim, dim) for _ in range(experts))

    def forward(self, hidden):
        flat = self.norm(hidden).flatten(0, 1)
        chosen, weight = self.router(flat)
        out = torch.zeros_like(flat)
        for i, expert in enumerate(self.experts):
            rows = (chosen[:, 0] == i).nonzero(as_tuple=True)[0]
            out.index_copy_(0, rows, expert(flat[rows]) * weight[rows])
        return hidden + out.view_as(hidden)


class Decoder(nn.Module):
    def __init__(self, vocab=40, dim=8, depth=3):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.blocks = nn.ModuleList(MoEBlock(dim) for _ in range(depth))
        self.head = nn.Linear(dim, vocab)

    def forward(self, ids):
        hidden = self.embed(ids)
        for block in self.blocks:
            hidden = block(hidden)
        return self.head(hidden)


class WeightIndex:
    def __init__(self, module):
        self.host = {}
        tensors = dict(module.named_parameters())  # ROOT
        for name, tensor in tensors.items():
            self.host[name] = tensor.detach().cpu()

    def names(self):
        return list(self.host)

    def load(self, name, device):
        return self.host[name].to(device)


def set_tensor(module, name, value):
    path, _, leaf = name.rpartition(".")
    owner = module.get_submodule(path)
    if leaf in owner._parameters:
        owner._parameters[leaf] = nn.Parameter(value, requires_grad=False)
    else:
        owner._buffers[leaf] = value


class StreamHook:
    def __init__(self, module, device):
        self.device = torch.device(device)
        module.to("cpu")
        self.index = WeightIndex(module)
        module.register_forward_pre_hook(self.onload)
        module.register_forward_hook(self.offload)

    def onload(self, module, args):
        for name in self.index.names():
            set_tensor(module, name, self.index.load(name, self.device))

    def offload(self, module, args, output):
        for name in self.index.names():
            set_tensor(module, name, self.index.host[name])
        return output


def dispatch(model, device, resident_blocks):
    model.embed.to(device)
    model.head.to(device)
    for i, block in enumerate(model.blocks):
        if i < resident_blocks:
            block.to(device)
        else:
            StreamHook(block, device)
    return model.eval()


@torch.no_grad()
def main():
    for resident in (3, 1):
        torch.manual_seed(0)
        model = dispatch(Decoder(), "cuda:0", resident)
        ids = torch.randint(0, 40, (2, 5), device="cuda:0")
        print(resident, model(ids)[:, -1].argmax(-1).tolist())


if __name__ == "__main__":
    main()

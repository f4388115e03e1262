# source: kohya-ss/musubi-tuner#1038
# mechanism: the offloading wrapper of checkpointed blocks hands each block's output back on the host, and the last one goes straight into the final layer on the GPU
# expect: raises
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


def move(value, device):
    if torch.is_tensor(value):
        return value.to(device)
    if isinstance(value, (tuple, list)):
        return type(value)(move(v, device) for v in value)
    return value


def offloading_wrapper(function, device):
    def run(*args):
        outputs = function(*move(args, device))
        return move(outputs, "cpu")

    return run


class Modulation(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.lin = nn.Linear(dim, 2 * dim)

    def forward(self, vec):
        return self.lin(torch.nn.functional.silu(vec))[:, None].chunk(2, dim=-1)


class StreamBlock(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.modulation = Modulation(dim)
        self.norm = nn.LayerNorm(dim, elementwise_affine=False)
        self.attention = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x, vec):
        shift, scale = self.modulation(vec)
        h = self.norm(x) * (1 + scale) + shift
        x = x + self.attention(h, h, h, need_weights=False)[0]
        return x + self.mlp(self.norm(x))


class FinalLayer(nn.Module):
    def __init__(self, dim, out):
        super().__init__()
        self.norm = nn.RMSNorm(dim)
        self.linear = nn.Linear(dim, out)

    def forward(self, x):
        return self.linear(self.norm(x))  # RAISE # ALSO


class VideoTransformer(nn.Module):
    def __init__(self, channels=4, dim=16, heads=4, depth=3):
        super().__init__()
        self.img_in = nn.Linear(channels, dim)
        self.time_in = nn.Linear(1, dim)
        self.blocks = nn.ModuleList(StreamBlock(dim, heads) for _ in range(depth))
        self.final_layer = FinalLayer(dim, channels)
        self.checkpointing = False
        self.activation_cpu_offloading = False

    def enable_gradient_checkpointing(self, activation_cpu_offloading=False):
        self.checkpointing = True
        self.activation_cpu_offloading = activation_cpu_offloading

    def run_block(self, block, x, vec):
        if not (self.training and self.checkpointing):
            return block(x, vec)
        function = block
        if self.activation_cpu_offloading:
            function = offloading_wrapper(block, vec.device)
        return checkpoint(function, x, vec, use_reentrant=False)

    def forward(self, img, timestep):
        x = self.img_in(img)
        vec = self.time_in(timestep[:, None])
        for block in self.blocks:
            x = self.run_block(block, x, vec)
        return self.final_layer(x)  # ROOT


def train(args):
    device = torch.device(args["device"])
    model = VideoTransformer().to(device).train()
    if args["gradient_checkpointing"]:
        model.enable_gradient_checkpointing(args["gradient_checkpointing_cpu_offload"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=args["lr"])
    for _ in range(2):
        latents, t = torch.randn(2, 9, 4, device=device), torch.rand(2, device=device)
        loss = (model(latents, t) - latents).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


if __name__ == "__main__":
    torch.manual_seed(0)
    print(train({"device": "cuda", "lr": 1e-3, "gradient_checkpointing": True, "gradient_checkpointing_cpu_offload": True}))

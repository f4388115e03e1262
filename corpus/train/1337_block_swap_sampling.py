# source: kohya-ss/musubi-tuner#675
# mechanism: in forward-only mode the block offloader swaps out every block past the first ones, not only those of the end, so after one sampling pass blocks that should stay on the GPU are on the CPU
# expect: raises
import torch
from torch import nn


class ModelOffloader:
    def __init__(self, num_blocks, blocks_to_swap, device):
        self.num_blocks = num_blocks
        self.blocks_to_swap = blocks_to_swap
        self.device = torch.device(device)
        self.forward_only = False
        self.moves = 0

    def set_forward_only(self, forward_only):
        self.forward_only = forward_only

    def prepare(self, blocks):
        resident = self.num_blocks - self.blocks_to_swap
        for i, block in enumerate(blocks):
            block.to(self.device if i < resident else "cpu")

    def swap_pair(self, idx):
        first_swapped = self.num_blocks - self.blocks_to_swap
        if idx < self.blocks_to_swap:
            return idx, first_swapped + idx
        if self.forward_only:  # ROOT
            return idx, idx - first_swapped  # ALSO
        return None

    def after_block(self, blocks, idx):
        pair = self.swap_pair(idx)
        if pair is None:
            return
        to_cpu, to_device = pair
        blocks[to_cpu].to("cpu")
        blocks[to_device].to(self.device)
        self.moves += 2


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.attn = nn.Linear(dim, dim)
        self.mlp = nn.Linear(dim, dim)

    def forward(self, hidden, context):
        mixed = self.attn(self.norm(hidden) + context)  # RAISE
        return hidden + self.mlp(torch.relu(mixed))


class VideoDiT(nn.Module):
    def __init__(self, channels=4, dim=12, depth=6):
        super().__init__()
        self.inp = nn.Linear(channels, dim)
        self.time = nn.Linear(1, dim)
        self.blocks = nn.ModuleList(Block(dim) for _ in range(depth))
        self.out = nn.Linear(dim, channels)
        self.offloader = None

    def enable_block_swap(self, blocks_to_swap, device):
        self.offloader = ModelOffloader(len(self.blocks), blocks_to_swap, device)

    def move_to_device_except_swap_blocks(self, device):
        blocks = self.blocks
        self.blocks = nn.ModuleList()
        self.to(device)
        self.blocks = blocks

    def switch_block_swap_for_inference(self):
        if self.offloader is not None:
            self.offloader.set_forward_only(True)
            self.offloader.prepare(self.blocks)

    def forward(self, latents, t, text):
        hidden = self.inp(latents)
        context = self.time(t.view(1, 1)) + text
        for i, block in enumerate(self.blocks):
            hidden = block(hidden, context)
            if self.offloader is not None:
                self.offloader.after_block(self.blocks, i)
        return self.out(hidden)


class TextEncoder(nn.Module):
    def __init__(self, dim=12):
        super().__init__()
        self.table = nn.Embedding(64, dim)

    def forward(self, prompt):
        ids = torch.tensor([ord(c) % 64 for c in prompt], device=self.table.weight.device)
        return self.table(ids).mean(0, keepdim=True)


@torch.no_grad()
def generate(dit, encoder, prompt, steps, device):
    text = encoder(prompt).to(device)
    latents = torch.randn(5, 4, device=device)
    for t in torch.linspace(1.0, 0.1, steps, device=device):
        latents = latents - dit(latents, t, text) / steps
    return latents.cpu()


def main():
    torch.manual_seed(0)
    device = torch.device("cuda")
    encoder = TextEncoder()
    for blocks_to_swap in (0, 2):
        dit = VideoDiT().eval()
        if blocks_to_swap:
            dit.enable_block_swap(blocks_to_swap, device)
            dit.move_to_device_except_swap_blocks(device)
            dit.switch_block_swap_for_inference()
        else:
            dit.to(device)
        print(blocks_to_swap, generate(dit, encoder, "a river", 3, device).mean().item())


if __name__ == "__main__":
    main()

# source: zjunlp/EasyEdit#103
# mechanism: the editor's offset is made on the GPU of the hyperparameters and added, by a hook, to a layer that the device map has put on the other GPU
# expect: raises
# needs: 2 GPUs
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class EditParams:
    layer: int = 2
    steps: int = 3
    lr: float = 0.3
    decay: float = 1e-3
    device: int = 0


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.up, self.down = nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim)

    def forward(self, hidden):
        return self.down(torch.relu(self.up(hidden)))


class LM(nn.Module):
    def __init__(self, vocab=30, dim=12, depth=4):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.blocks = nn.ModuleList(Block(dim) for _ in range(depth))
        self.head = nn.Linear(dim, vocab)

    def forward(self, input_ids):
        hidden = self.embed(input_ids)
        for block in self.blocks:
            hidden = hidden.to(block.up.weight.device)
            hidden = hidden + block(hidden)
        return self.head(hidden.to(self.head.weight.device))


def balance(model, devices):
    model.embed.to(devices[0])
    half = len(model.blocks) // 2
    for i, block in enumerate(model.blocks):
        block.to(devices[0] if i < half else devices[1])
    model.head.to(devices[1])
    return model


@contextmanager
def edit_output(module, fn):
    handle = module.register_forward_hook(lambda mod, inputs, output: fn(output))
    try:
        yield
    finally:
        handle.remove()


def compute_v(model, prompt_ids, target_id, hparams):
    for p in model.parameters():
        p.requires_grad_(False)
    device = torch.device("cuda", hparams.device)
    layer = model.blocks[hparams.layer]
    delta = torch.zeros(layer.down.out_features, device=device, requires_grad=True)  # ALSO
    optimizer = torch.optim.Adam([delta], lr=hparams.lr)

    def add_delta(output):
        output = output.clone()
        output[:, -1] += delta  # RAISE # ROOT
        return output

    for _ in range(hparams.steps):
        optimizer.zero_grad()
        with edit_output(layer, add_delta):
            logits = model(prompt_ids.to(device))[:, -1]
        nll = -torch.log_softmax(logits, dim=-1)[:, target_id].mean()
        loss = nll + hparams.decay * delta.norm().to(nll.device)
        loss.backward()
        optimizer.step()
    return delta.detach(), loss.item()


def apply_edit(model, hparams, delta):
    bias = model.blocks[hparams.layer].down.bias
    with torch.no_grad():
        bias += delta.to(bias.device)
    return model


def main():
    torch.manual_seed(0)
    model = balance(LM(), ["cuda:0", "cuda:1"])
    requests = [([1, 2, 3], 7), ([4, 5, 6], 9)]
    hparams = EditParams()
    for prompt, target in requests:
        delta, loss = compute_v(model, torch.tensor([prompt]), target, hparams)
        apply_edit(model, hparams, delta)
        print(target, round(loss, 4))


if __name__ == "__main__":
    main()

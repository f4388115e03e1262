# source: huggingface/accelerate#3135
# mechanism: a checkpoint is dispatched without the list of block classes that may not be split, so the map cuts a decoder block between its attention and its MLP and the residual addition meets two GPUs
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn


class DecoderBlock(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.attn = nn.Linear(dim, dim)
        self.mlp = nn.Linear(dim, dim)

    def forward(self, hidden):
        hidden = hidden + self.attn(self.norm(hidden))
        return hidden + self.mlp(hidden).relu()  # RAISE


class TinyDecoder(nn.Module):
    def __init__(self, vocab=32, dim=16, depth=3):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.blocks = nn.ModuleList(DecoderBlock(dim) for _ in range(depth))
        self.head = nn.Linear(dim, vocab)

    def forward(self, input_ids):
        hidden = self.embed(input_ids)
        for block in self.blocks:
            hidden = block(hidden)
        return self.head(hidden)


def send_to(value, device):
    if torch.is_tensor(value):
        return value.to(device)
    if isinstance(value, (list, tuple)):
        return type(value)(send_to(v, device) for v in value)
    if isinstance(value, dict):
        return {k: send_to(v, device) for k, v in value.items()}
    return value


def attach_align_hook(module, device):
    inner = module.forward

    def forward(*args, **kwargs):
        return inner(*send_to(args, device), **send_to(kwargs, device))

    module.to(device)
    module.forward = forward


def placement_units(module, atomic, prefix=""):
    for name, child in module.named_children():
        path = f"{prefix}{name}"
        if type(child).__name__ in atomic or not list(child.children()):
            yield path, sum(p.numel() for p in child.parameters())
        else:
            yield from placement_units(child, atomic, path + ".")


def infer_device_map(model, max_params, atomic):
    device_map, used, index = {}, 0, 0
    devices = list(max_params)
    for path, size in placement_units(model, atomic):
        if used + size > max_params[devices[index]] and index + 1 < len(devices):
            index, used = index + 1, 0
        device_map[path] = devices[index]
        used += size
    return device_map


def load_checkpoint_and_dispatch(model, state_dict, max_params, no_split_classes=None):
    model.load_state_dict(state_dict)
    device_map = infer_device_map(model, max_params, no_split_classes or ())  # ALSO
    for path, device in device_map.items():
        attach_align_hook(model.get_submodule(path), device)
    return model, device_map


def generate(model, input_ids, steps):
    for _ in range(steps):
        logits = model(input_ids)[:, -1]
        input_ids = torch.cat([input_ids, logits.argmax(-1, keepdim=True).to(input_ids.device)], dim=1)
    return input_ids


def main():
    torch.manual_seed(0)
    checkpoint = TinyDecoder().state_dict()
    budget = {"cuda:0": 1000, "cuda:1": 10_000}
    model, device_map = load_checkpoint_and_dispatch(TinyDecoder(), checkpoint, budget)  # ROOT
    prompt = torch.randint(0, 32, (1, 5), device=device_map["embed"])
    print(generate(model, prompt, 3).shape)


if __name__ == "__main__":
    main()

# source: mosaicml/llm-foundry#1486
# mechanism: the indices that unpad a batch are computed once from the mask on the first GPU and given, in a dictionary, to the blocks of all GPUs, and a block's hook moves tensors only, not what a dictionary holds
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn


def gen_padding_info(attention_mask):
    indices = attention_mask.flatten().nonzero(as_tuple=True)[0]
    return {
        "indices": indices,
        "lengths": attention_mask.sum(1),
        "shape": tuple(attention_mask.shape),
    }


def unpad(hidden, info):
    flat = hidden.reshape(-1, hidden.size(-1))
    return flat.index_select(0, info["indices"])  # RAISE


def pad(flat, info):
    b, t = info["shape"]
    out = flat.new_zeros(b * t, flat.size(-1))
    return out.index_copy(0, info["indices"], flat).view(b, t, -1)


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.ffn = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, hidden, padding_info=None):
        normed = self.norm(hidden)
        if padding_info is None:
            return hidden + self.ffn(normed)
        packed = self.ffn(unpad(normed, padding_info))
        return hidden + pad(packed, padding_info)


class MPT(nn.Module):
    def __init__(self, vocab=32, dim=8, depth=4):
        super().__init__()
        self.wte = nn.Embedding(vocab, dim)
        self.blocks = nn.ModuleList(Block(dim) for _ in range(depth))
        self.norm_f = nn.LayerNorm(dim)

    def forward(self, input_ids, attention_mask=None):
        hidden = self.wte(input_ids)
        info = None
        if attention_mask is not None and not bool(attention_mask.all()):
            info = gen_padding_info(attention_mask)
        for block in self.blocks:
            device = block.norm.weight.device
            block_info = info  # ROOT
            hidden = block(hidden.to(device), padding_info=block_info)  # ALSO
        hidden = self.norm_f(hidden.to(self.norm_f.weight.device))
        return hidden @ self.wte.weight.t().to(hidden.device)


def infer_auto_device_map(model, devices):
    device_map = {"wte": devices[0], "norm_f": devices[-1]}
    share = -(-len(model.blocks) // len(devices))
    for i in range(len(model.blocks)):
        device_map[f"blocks.{i}"] = devices[i // share]
    return device_map


def dispatch(model, device_map):
    for name, device in device_map.items():
        model.get_submodule(name).to(device)
    return model


@torch.no_grad()
def generate(model, input_ids, attention_mask, max_new_tokens):
    for _ in range(max_new_tokens):
        logits = model(input_ids, attention_mask)
        token = logits[:, -1].argmax(-1, keepdim=True).to(input_ids.device)
        input_ids = torch.cat([input_ids, token], 1)
        attention_mask = torch.cat([attention_mask, attention_mask.new_ones(token.shape)], 1)
    return input_ids


def tokenize(prompts, pad_id=0):
    rows = [[ord(c) % 31 + 1 for c in p] for p in prompts]
    width = max(map(len, rows))
    ids = torch.tensor([[pad_id] * (width - len(r)) + r for r in rows])
    return ids, (ids != pad_id).long()


def main():
    torch.manual_seed(0)
    model = MPT()
    model = dispatch(model, infer_auto_device_map(model, ["cuda:0", "cuda:1"])).eval()
    for prompts in (["abcd", "efgh"], ["the quick", "fox"]):
        ids, mask = tokenize(prompts)
        print(generate(model, ids.cuda(0), mask.cuda(0), 2).shape)


if __name__ == "__main__":
    main()

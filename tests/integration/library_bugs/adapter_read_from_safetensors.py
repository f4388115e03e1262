# source: hako-mikan/sd-webui-supermerger#49
# mechanism: safetensors load_file gives CPU tensors by default; they are merged into weights on the GPU
import os
import tempfile
import torch
from safetensors.torch import load_file, save_file
from transformers import CLIPTextConfig, CLIPTextModel

TARGETS = ("q_proj", "v_proj")


def tiny_text_encoder():
    config = CLIPTextConfig(vocab_size=64, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2, max_position_embeddings=16)
    return CLIPTextModel(config)


def target_modules(model):
    return {name: m for name, m in model.named_modules() if name.split(".")[-1] in TARGETS}


def write_adapter(model, path, rank=2):
    tensors = {}
    for name, module in target_modules(model).items():
        key = "lora_te_" + name.replace(".", "_")
        tensors[key + ".lora_down.weight"] = torch.randn(rank, module.in_features) * 0.01
        tensors[key + ".lora_up.weight"] = torch.randn(module.out_features, rank) * 0.01
        tensors[key + ".alpha"] = torch.tensor(float(rank))
    save_file(tensors, path)


class LoraMerger:
    def __init__(self, path, ratio=1.0):
        self.ratio = ratio
        self.tensors = load_file(path)  # ROOT

    def delta(self, key):
        down = self.tensors[key + ".lora_down.weight"]
        up = self.tensors[key + ".lora_up.weight"]
        alpha = self.tensors[key + ".alpha"].item()
        return self.ratio * (alpha / down.shape[0]) * (up @ down)

    @torch.no_grad()
    def apply(self, model):
        for name, module in target_modules(model).items():
            module.weight.add_(self.delta("lora_te_" + name.replace(".", "_")))
        return model


def main():
    torch.manual_seed(0)
    encoder = tiny_text_encoder().to("cuda:0").eval()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "style.safetensors")
        write_adapter(encoder, path)
        merged = LoraMerger(path, ratio=0.8).apply(encoder)
    ids = torch.randint(0, 60, (1, 8), device="cuda:0")
    return merged(input_ids=ids).last_hidden_state.mean()


print(main())

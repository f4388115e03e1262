# source: huggingface/transformers#47169
# mechanism: offloading hooks the forward of whole sub-models, and generation calls the embedding of one of them directly, before any hook has moved it
# expect: raises
import torch
from torch import nn


class CpuOffload:
    def __init__(self, device):
        self.device = torch.device(device)
        self.previous = None
        self.module = None

    def pre_forward(self, module, args, kwargs):
        if self.previous is not None:
            self.previous.offload()
        module.to(self.device)
        move = lambda v: v.to(self.device) if torch.is_tensor(v) else v
        return tuple(move(a) for a in args), {k: move(v) for k, v in kwargs.items()}

    def offload(self):
        self.module.to("cpu")


def cpu_offload_with_hook(module, device, previous=None):
    module.to("cpu")
    hook = CpuOffload(device)
    hook.previous, hook.module = previous, module
    module.register_forward_pre_hook(hook.pre_forward, with_kwargs=True)
    return hook


class SubModel(nn.Module):
    def __init__(self, vocab_in, vocab_out, dim):
        super().__init__()
        self.input_embeds_layer = nn.Embedding(vocab_in, dim)
        self.mixer = nn.GRU(dim, dim, batch_first=True)
        self.lm_head = nn.Linear(dim, vocab_out)

    def forward(self, input_ids=None, input_embeds=None):
        if input_embeds is None:
            input_embeds = self.input_embeds_layer(input_ids)
        hidden, _ = self.mixer(input_embeds)
        return self.lm_head(hidden)


class Codec(nn.Module):
    def __init__(self, vocab, samples):
        super().__init__()
        self.table = nn.Embedding(vocab, samples)

    def forward(self, codes):
        return torch.tanh(self.table(codes)).flatten(1)


class SpeechModel(nn.Module):
    def __init__(self, text_vocab=40, codes=24, dim=16):
        super().__init__()
        self.semantic = SubModel(text_vocab, codes, dim)
        self.coarse = SubModel(codes, codes, dim)
        self.codec = Codec(codes, samples=8)
        self.execution_device = torch.device("cpu")

    def to(self, device):
        self.execution_device = torch.device(device)
        return super().to(device)

    def enable_cpu_offload(self, gpu_id=0):
        device = torch.device("cuda", gpu_id)
        self.execution_device = device
        self.to_hooks = []
        hook = None
        components = [self.semantic, self.coarse, self.codec]  # ROOT
        for module in components:
            hook = cpu_offload_with_hook(module, device, previous=hook)
            self.to_hooks.append(hook)

    def merge_history(self, input_ids, history):
        embeds = self.semantic.input_embeds_layer(input_ids)  # RAISE
        if history is not None:
            embeds = embeds + self.semantic.input_embeds_layer(history)
        return embeds

    @torch.no_grad()
    def generate(self, input_ids, history=None):
        input_ids = input_ids.to(self.execution_device)
        if history is not None:
            history = history.to(self.execution_device)
        embeds = self.merge_history(input_ids, history)
        semantic = self.semantic(input_embeds=embeds).argmax(-1)
        coarse = self.coarse(semantic).argmax(-1)
        return self.codec(coarse).cpu()


def process(text, vocab=40):
    return torch.tensor([[ord(c) % vocab for c in text]])


def main():
    torch.manual_seed(0)
    ids = process("hello, my name is")
    model = SpeechModel().to("cuda:0")
    print(model.generate(ids).shape)
    model = SpeechModel()
    model.enable_cpu_offload()
    print(model.generate(ids, history=ids.flip(1)).shape)


if __name__ == "__main__":
    main()

# source: huggingface/peft#352
# mechanism: under parameter offloading the wrapper's device property names the storage device (CPU), and the prompt rows are placed by it instead of by the input embeddings
# expect: raises
import torch
from torch import nn


class OffloadHook:
    def __init__(self, module, compute):
        self.module = module
        self.compute = torch.device(compute)
        module.register_forward_pre_hook(self.before)
        module.register_forward_hook(self.after)

    def before(self, module, args):
        module.to(self.compute)
        return tuple(a.to(self.compute) if torch.is_tensor(a) else a for a in args)

    def after(self, module, args, output):
        module.to("cpu")
        return output


class LanguageModel(nn.Module):
    def __init__(self, vocab=40, dim=16):
        super().__init__()
        self.wte = nn.Embedding(vocab, dim)
        self.mixer = nn.GRU(dim, dim, batch_first=True)
        self.lm_head = nn.Linear(dim, vocab)

    def forward(self, inputs_embeds, mask):
        hidden, _ = self.mixer(inputs_embeds)
        return self.lm_head(hidden * mask[..., None])


class PromptEncoder(nn.Module):
    def __init__(self, tokens, dim):
        super().__init__()
        self.embedding = nn.Embedding(tokens, dim)

    def forward(self, indices):
        return self.embedding(indices)


class PromptTunedModel(nn.Module):
    def __init__(self, base, tokens=3):
        super().__init__()
        self.base = base
        self.tokens = tokens
        self.prompt_encoder = PromptEncoder(tokens, base.wte.embedding_dim)

    @property
    def device(self):
        return next(self.parameters()).device  # ALSO

    def get_prompt(self, batch_size):
        rows = torch.arange(self.tokens)[None].expand(batch_size, -1)
        return self.prompt_encoder(rows)

    def forward(self, input_ids, attention_mask):
        embeds = self.base.wte(input_ids)
        prefix = torch.ones(len(input_ids), self.tokens).to(attention_mask.device)
        mask = torch.cat([prefix, attention_mask], dim=1)
        prompts = self.get_prompt(len(input_ids)).to(self.device)  # ROOT
        return self.base(torch.cat([prompts, embeds], dim=1), mask)  # RAISE # ALSO


def enable_offload(model, compute):
    for module in (model.base.wte, model.base.mixer, model.base.lm_head, model.prompt_encoder):
        OffloadHook(module, compute)
    return model


def main():
    torch.manual_seed(0)
    device = torch.device("cuda", 0)
    model = enable_offload(PromptTunedModel(LanguageModel()), device)
    ids = torch.randint(0, 40, (2, 5), device=device)
    mask = torch.ones(2, 5, device=device)
    logits = model(ids, mask)
    print("logits", tuple(logits.shape), logits.device)


if __name__ == "__main__":
    main()

# source: unslothai/notebooks#241
# mechanism: the prompt goes to model.device, the place of the first parameter, which is the vision tower's GPU, and the word embeddings are mapped to the other one
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn


class VisionTower(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.patch = nn.Linear(12, dim)

    def forward(self, pixels):
        return self.patch(pixels.flatten(2)).mean(1, keepdim=True)


class TextModel(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.embed_tokens = nn.Embedding(vocab, dim)
        self.layer = nn.Linear(dim, dim)

    def forward(self, embeds):
        return embeds + torch.tanh(self.layer(embeds)).cumsum(1)


class MultimodalLM(nn.Module):
    def __init__(self, vocab=48, dim=16):
        super().__init__()
        self.vision_tower = VisionTower(dim)
        self.language_model = TextModel(vocab, dim)
        self.lm_head = nn.Linear(dim, vocab, bias=False)

    @property
    def device(self):
        return next(self.parameters()).device  # ALSO

    def get_input_embeddings(self):
        return self.language_model.embed_tokens

    def forward(self, input_ids, pixel_values=None):
        embeds = self.get_input_embeddings()(input_ids)  # RAISE
        if pixel_values is not None:
            image = self.vision_tower(pixel_values.to(self.vision_tower.patch.weight.device))
            embeds = torch.cat([image.to(embeds.device), embeds], dim=1)
        return self.lm_head(self.language_model(embeds).to(self.lm_head.weight.device))


def balanced_map(model, max_params):
    device_map, used, index = {}, 0, 0
    for name, child in model.named_children():
        size = sum(p.numel() for p in child.parameters())
        if used and used + size > max_params and index + 1 < torch.cuda.device_count():
            index, used = index + 1, 0
        device_map[name] = f"cuda:{index}"
        used += size
    return device_map


def load(max_params):
    torch.manual_seed(0)
    model = MultimodalLM()
    for name, device in balanced_map(model, max_params).items():
        getattr(model, name).to(device)
    return model.eval()


class Template:
    def __call__(self, messages):
        text = "".join(f"<{m['role']}>{m['content']}" for m in messages)
        return {"input_ids": torch.tensor([[ord(c) % 48 for c in text]])}


def prepare_inputs(model, template, messages, image=None):
    inputs = template(messages)
    if image is not None:
        inputs["pixel_values"] = image[None]
    input_device = model.device  # ROOT
    return {k: v.to(input_device) for k, v in inputs.items()}  # ALSO


@torch.no_grad()
def stream(model, inputs, max_new_tokens):
    input_ids = inputs.pop("input_ids")
    for _ in range(max_new_tokens):
        logits = model(input_ids, **inputs)
        token = logits[:, -1].argmax(-1, keepdim=True)
        yield token.item()
        input_ids = torch.cat([input_ids, token.to(input_ids.device)], dim=1)


def main():
    template = Template()
    messages = [{"role": "user", "content": "what is in it"}]
    for max_params in (10_000, 600):
        model = load(max_params)
        inputs = prepare_inputs(model, template, messages, image=torch.rand(4, 3, 4))
        print(list(stream(model, inputs, 3)))


if __name__ == "__main__":
    main()

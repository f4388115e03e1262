# source: databrickslabs/dolly PR#180
# mechanism: the text pipeline moves the input ids to the model's device and hands the attention mask on as it came from the tokenizer.
# expect: raises
import torch
import torch.nn.functional as F
from torch import nn

PROMPT = "### Instruction: {instruction} ### Response:"


class SplitTokenizer:
    pad_token_id = 0

    def __init__(self, size=64):
        self.size = size

    def __call__(self, text):
        ids = [1 + sum(map(ord, w)) % (self.size - 1) for w in text.split()]
        pad = (-len(ids)) % 4
        ids = [self.pad_token_id] * pad + ids
        mask = [0] * pad + [1] * (len(ids) - pad)
        return {"input_ids": torch.tensor([ids]), "attention_mask": torch.tensor([mask])}

    def decode(self, ids):
        return " ".join(f"<{i}>" for i in ids)


class NeoXLike(nn.Module):
    def __init__(self, vocab=64, dim=16):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.head = nn.Linear(dim, vocab)

    @property
    def device(self):
        return self.embed.weight.device

    def forward(self, input_ids, attention_mask):
        q, k, v = self.qkv(self.embed(input_ids)).chunk(3, dim=-1)
        length = input_ids.shape[1]
        causal = torch.ones(length, length, dtype=torch.bool, device=input_ids.device).tril()
        allowed = causal[None] & attention_mask[:, None, :].bool()  # RAISE
        scores = (q @ k.transpose(1, 2) / q.shape[-1] ** 0.5).masked_fill(~allowed, -1e4)
        return self.head(torch.softmax(scores, -1) @ v)

    @torch.no_grad()
    def generate(self, input_ids, attention_mask, max_new_tokens):
        for _ in range(max_new_tokens):
            logits = self(input_ids, attention_mask)
            token = logits[:, -1:].argmax(-1)
            input_ids = torch.cat([input_ids, token], dim=1)
            attention_mask = F.pad(attention_mask, (0, 1), value=1)
        return input_ids


class InstructionPipeline:
    def __init__(self, model, tokenizer, **generate_kwargs):
        self.model, self.tokenizer = model, tokenizer
        self.generate_kwargs = {"max_new_tokens": 4, **generate_kwargs}

    def preprocess(self, instruction):
        inputs = self.tokenizer(PROMPT.format(instruction=instruction))  # ALSO
        inputs["instruction"] = instruction
        return inputs

    def _forward(self, model_inputs):
        input_ids = model_inputs["input_ids"]
        attention_mask = model_inputs.get("attention_mask")  # ALSO
        generated = self.model.generate(
            input_ids=input_ids.to(self.model.device),
            attention_mask=attention_mask,  # ROOT
            **self.generate_kwargs,
        )
        return {"generated": generated[:, input_ids.shape[1] :], "instruction": model_inputs["instruction"]}

    def postprocess(self, outputs):
        return {outputs["instruction"]: self.tokenizer.decode(outputs["generated"][0].tolist())}

    def __call__(self, instruction):
        inputs = self.preprocess(instruction)
        return self.postprocess(self._forward(inputs))


def main():
    torch.manual_seed(0)
    device = "cuda:0" if torch.cuda.is_available() else "cpu"
    pipeline = InstructionPipeline(NeoXLike().to(device).eval(), SplitTokenizer(), max_new_tokens=3)
    print(pipeline("Name three rivers of Europe"))


if __name__ == "__main__":
    main()

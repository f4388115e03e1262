# source: rasbt/LLMs-from-scratch#435
# mechanism: [data not moved] the model is on CUDA, the token ids of the prompt come from the tokenizer helper on the CPU
# phase: generation; failing op: aten::embedding (argument index)
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class GPTModel(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.tok_emb = nn.Embedding(cfg["vocab_size"], cfg["emb_dim"])
        self.pos_emb = nn.Embedding(cfg["context_length"], cfg["emb_dim"])
        self.out_head = nn.Linear(cfg["emb_dim"], cfg["vocab_size"])

    def forward(self, in_idx):
        tok_embeds = self.tok_emb(in_idx)  # RAISE
        pos_embeds = self.pos_emb(torch.arange(in_idx.shape[1], device=in_idx.device))
        return self.out_head(tok_embeds + pos_embeds)


def text_to_token_ids(text):
    return torch.tensor([ord(c) % 32 for c in text]).unsqueeze(0)


def generate(model, idx, max_new_tokens, context_size):
    for _ in range(max_new_tokens):  # ALSO
        with torch.no_grad():
            logits = model(idx[:, -context_size:])[:, -1, :]
        idx = torch.cat((idx, logits.argmax(-1, keepdim=True)), dim=1)
    return idx


config = {"vocab_size": 32, "emb_dim": 8, "context_length": 16}
gpt = GPTModel(config)
gpt.to(dev)
gpt.eval()
token_ids = generate(
    model=gpt,
    idx=text_to_token_ids("Every effort moves you"),  # ROOT
    max_new_tokens=4,
    context_size=config["context_length"],
)

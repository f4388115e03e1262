# source: TransformerLensOrg/TransformerLens#911
# mechanism: [index tensor] position numbers are counted from the attention mask, which the model sends to the device noted in its configuration; a launcher has moved the model to another card without telling the configuration
# phase: forward, only with an attention mask; failing op: aten::index (cuda:1 table, cuda:0 index)
# expect: raises
# needs: 2 GPUs
import torch
import torch.nn as nn
from types import SimpleNamespace

dev = torch.device("cuda", 0)


class PosEmbed(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.W_pos = nn.Parameter(torch.randn(cfg.n_ctx, cfg.d_model) * 0.1)

    def forward(self, tokens, attention_mask=None):
        if attention_mask is None:
            return self.W_pos[: tokens.shape[1]].expand(len(tokens), -1, -1)
        offset = (attention_mask.cumsum(dim=1) - 1).clamp(min=0)  # ALSO
        return self.W_pos[offset] * attention_mask.unsqueeze(-1)  # RAISE

class Hooked(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.W_E, self.pos = nn.Embedding(cfg.d_vocab, cfg.d_model), PosEmbed(cfg)
        self.to(cfg.device)

    def forward(self, tokens, attention_mask=None):
        if attention_mask is not None:
            attention_mask = attention_mask.to(self.cfg.device)  # ROOT
        return (self.W_E(tokens) + self.pos(tokens, attention_mask)) @ self.W_E.weight.T

def prepare(process_index, model, loader):
    device = torch.device('cuda', process_index)
    return model.to(device), [[t.to(device) for t in batch] for batch in loader]

tokens = torch.randint(0, 11, (2, 6))
cfg = SimpleNamespace(d_model=8, n_ctx=16, d_vocab=11, device=dev)
model, loader = prepare(1, Hooked(cfg), [(tokens, torch.ones_like(tokens))])
for tokens, mask in loader:
    model(tokens)
    model(tokens, mask)

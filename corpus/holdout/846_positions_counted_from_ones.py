# source: huggingface/transformers PR#21726 (ErnieMEmbeddings, multi-GPU data parallel test)
# mechanism: [factory call without device=] default position numbers are the running sum over torch.ones() made without device; only used when the caller passes no position_ids
# phase: forward; failing op: aten::embedding (argument index)
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class Embeddings(nn.Module):
    def __init__(self, vocab, hidden, max_len, pad=1):
        super().__init__()
        self.words = nn.Embedding(vocab, hidden, padding_idx=pad)
        self.positions = nn.Embedding(max_len, hidden)
        self.norm = nn.LayerNorm(hidden)

    def forward(self, input_ids=None, position_ids=None, inputs_embeds=None, past_length=0):
        if inputs_embeds is None:
            inputs_embeds = self.words(input_ids)
        if position_ids is None:
            shape = inputs_embeds.shape[:-1]
            ones = torch.ones(shape, dtype=torch.int64)  # ROOT
            position_ids = ones.cumsum(dim=1) - ones  # ALSO
            if past_length > 0:
                position_ids = position_ids + past_length
        position_ids = position_ids + 2
        return self.norm(inputs_embeds + self.positions(position_ids))  # RAISE  # ALSO

class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embeddings = Embeddings(20, 8, 16)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)

    def forward(self, input_ids, position_ids=None):
        return self.layer(self.embeddings(input_ids, position_ids))

model = Encoder().to(dev).eval()
ids = torch.tensor([[0, 5, 7, 2], [0, 9, 2, 1]], device=dev)
model(ids, torch.arange(4, device=dev).expand(2, 4))
model(ids)

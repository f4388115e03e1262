# source: huggingface/transformers#30997 (PaliGemmaForConditionalGeneration with device_map='auto')
# mechanism: [model-parallel hook] logits come out of the last GPU, labels and attention mask stay on the first; the mask is moved to the logits and then selects rows of both
# phase: loss; failing op: aten::index (cuda:0 labels, cuda:1 boolean mask)
# expect: raises
# needs: 2 GPUs
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device("cuda", 0)


d1 = torch.device("cuda", 1)
class Captioner(nn.Module):
    def __init__(self, vocab=11):
        super().__init__()
        self.embed = nn.Embedding(vocab, 6).to(dev)
        self.body = nn.Linear(6, 6).to(dev)
        self.head = nn.Linear(6, vocab).to(d1)

    def forward(self, ids, mask, labels=None):
        h = self.body(self.embed(ids)).tanh()
        logits = self.head(h.to(d1))
        if labels is None:
            return logits
        shift_mask = mask[:, 1:]
        logit_rows = shift_mask.to(logits.device) != 0
        label_rows = shift_mask.to(logits.device) != 0  # ROOT
        shift_logits = logits[:, :-1][logit_rows]
        shift_labels = labels[:, 1:][label_rows]  # RAISE  # ALSO
        return F.cross_entropy(shift_logits, shift_labels.to(logits.device))

ids = torch.randint(0, 11, (2, 5), device=dev)
mask = torch.ones_like(ids)
mask[1, 3:] = 0
Captioner()(ids, mask, labels=ids)

# source: huggingface/transformers PR#23149 (gpt2 multi-gpu fix: labels.to(lm_logits.device))
# mechanism: [model-parallel hook] inputs and labels start on the first GPU; hidden states travel with the stages, labels do not
# phase: loss; failing op: aten::nll_loss_forward (cuda:1 vs cuda:0)
# expect: raises
# needs: 2 GPUs
# root: GPT2LMHeadModel.forward: labels not moved to the device of the logits
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device('cuda', 0)


d1 = torch.device('cuda', 1)
wte, lm_head = nn.Embedding(6, 4).to(dev), nn.Linear(4, 6).to(d1)
def lm(ids, labels):
    logits = lm_head(wte(ids).to(d1))
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())  # RAISE  # ALSO

ids = torch.tensor([[1, 4, 2, 5]], device=dev)
labels = ids.clone()  # ROOT
lm(ids, labels)  # ALSO

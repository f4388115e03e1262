# source: unslothai/unsloth-zoo PR#139 ('n_items on cuda:0 and operate with loss on cuda:7')
# mechanism: [zero-dim scalar] token count kept as a 0-d tensor of the first GPU, loss computed on the last one; only 0-d CPU tensors are exempt, not 0-d tensors of another GPU
# phase: loss; failing op: aten::div (cuda:1 0-d / cuda:0 0-d)
# expect: raises
# needs: 2 GPUs
# root: n_items given to the loss as a tensor instead of an int
import torch

dev = torch.device('cuda', 0)


d1 = torch.device('cuda', 1)
embed = torch.nn.Embedding(9, 4).to(dev)
head = torch.nn.Linear(4, 9).to(d1)
ids = torch.randint(0, 9, (2, 6), device=dev)
n_items = (ids[:, 1:] != 0).sum()  # ROOT
logits = head(embed(ids).to(d1))[:, :-1].reshape(-1, 9)
labels = ids[:, 1:].reshape(-1).to(logits.device)
total = torch.nn.functional.cross_entropy(logits, labels, ignore_index=0, reduction="sum")
loss = total / n_items  # RAISE  # ALSO

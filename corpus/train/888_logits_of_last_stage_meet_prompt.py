# source: huggingface/transformers PR#34076 (Generate: move logits to same device as input_ids)
# mechanism: [model-parallel hook] prompt is moved to the device of the model's first parameters; the head, hence the logits, is on another GPU, and the logits processors combine the two
# phase: generation; failing op: aten::gather (cuda:1 scores, cuda:0 index)
# expect: raises
# needs: 2 GPUs
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


d1 = torch.device("cuda", 1)
def align(mod, args):
    return tuple(a.to(mod.weight.device) for a in args)

class Decoder(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.embed, self.mix, self.head = nn.Embedding(vocab, dim), nn.Linear(dim, dim), nn.Linear(dim, vocab)

    def forward(self, ids):
        return self.head(self.mix(self.embed(ids)).relu())

class RepetitionPenalty:
    def __init__(self, penalty):
        self.penalty = penalty

    def __call__(self, ids, scores):
        score = torch.gather(scores, 1, ids)  # RAISE  # ALSO
        score = torch.where(score < 0, score * self.penalty, score / self.penalty)
        return scores.scatter(1, ids, score)

@torch.no_grad()
def generate(model, ids, processors, steps):
    for _ in range(steps):
        logits = model(ids)[:, -1, :].float()  # ROOT
        for process in processors:
            logits = process(ids, logits)  # ALSO
        ids = torch.cat([ids, logits.argmax(-1, keepdim=True).to(ids.device)], dim=1)
    return ids

model = Decoder(11, 6)
for name, where in {"embed": dev, "mix": dev, "head": d1}.items():
    model.get_submodule(name).to(where).register_forward_pre_hook(align)
generate(model, torch.tensor([[1, 4, 2]]).to(next(model.parameters()).device), [RepetitionPenalty(1.2)], 3)

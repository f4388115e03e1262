# source: TransformerLensOrg/TransformerLens#1508
# mechanism: generate() moves its input but goes on with the reference it took before
# phase: generation; aten::cat
# expect: raises
import torch

dev = torch.device("cuda", 0)


def generate(model, prompt, steps):
    tokens = prompt  # ROOT
    prompt = prompt.to(dev)  # ALSO
    for _ in range(steps):
        new = model(prompt).argmax(-1)[:, -1:]
        tokens = torch.cat((tokens, new), dim=1)  # RAISE
        prompt = torch.cat((prompt, new), dim=1)
    return tokens


model = torch.nn.Sequential(torch.nn.Embedding(8, 4), torch.nn.Linear(4, 8)).to(dev)
generate(model, torch.tensor([[1, 5, 2]]), steps=2)

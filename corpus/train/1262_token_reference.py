# source: meta-pytorch/captum#203
# mechanism: a helper that makes reference tokens has a device argument that defaults to the CPU, and the caller does not hand its device on
# expect: raises
import torch
from torch import nn


class TokenReference:
    def __init__(self, reference_token_idx=0):
        self.reference_token_idx = reference_token_idx

    def generate_reference(self, sequence_length, device=torch.device("cpu")):
        return torch.full((sequence_length,), self.reference_token_idx, dtype=torch.long, device=device)


class Vocab:
    def __init__(self, texts):
        words = sorted({w for t in texts for w in t.split()})
        self.stoi = {"<pad>": 0, "<unk>": 1, **{w: i + 2 for i, w in enumerate(words)}}

    def __len__(self):
        return len(self.stoi)

    def encode(self, text, min_len):
        ids = [self.stoi.get(w, 1) for w in text.split()]
        return ids + [0] * (min_len - len(ids))


class SentimentCNN(nn.Module):
    def __init__(self, vocab_size, dim=12, sizes=(2, 3)):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, dim, padding_idx=0)
        self.convs = nn.ModuleList([nn.Conv1d(dim, 6, s) for s in sizes])
        self.fc = nn.Linear(6 * len(sizes), 1)

    def forward_embedded(self, emb):
        x = emb.transpose(1, 2)
        pooled = [torch.relu(c(x)).max(dim=2).values for c in self.convs]
        return self.fc(torch.cat(pooled, 1)).squeeze(1)

    def forward(self, ids):
        return self.forward_embedded(self.embedding(ids))  # RAISE


class Interpreter:
    def __init__(self, model, vocab, device, min_len=6):
        self.model, self.vocab, self.device = model, vocab, device
        self.token_reference = TokenReference(vocab.stoi["<pad>"])
        self.min_len = min_len

    def attribute(self, ids, reference, steps=6):
        base = self.model(reference)
        start, end = self.model.embedding(reference), self.model.embedding(ids)
        total = torch.zeros_like(end)
        for k in range(1, steps + 1):
            point = (start + (end - start) * k / steps).detach().requires_grad_()
            total += torch.autograd.grad(self.model.forward_embedded(point).sum(), point)[0]
        scores = (total / steps * (end - start)).sum(-1)
        return scores.squeeze(0).detach(), base

    def interpret_sentence(self, sentence):
        self.model.zero_grad()
        ids = torch.tensor(self.vocab.encode(sentence, self.min_len), device=self.device).unsqueeze(0)
        pred = torch.sigmoid(self.model(ids)).item()
        reference = self.token_reference.generate_reference(ids.shape[1])  # ROOT
        scores, _ = self.attribute(ids, reference.unsqueeze(0))  # ALSO
        return pred, scores.cpu().tolist()


def main():
    torch.manual_seed(0)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    texts = ["it was a fantastic performance", "i have never seen something as bad"]
    vocab = Vocab(texts)
    model = SentimentCNN(len(vocab)).to(device).eval()
    interpreter = Interpreter(model, vocab, device)
    for text in texts:
        print(text, interpreter.interpret_sentence(text))


if __name__ == "__main__":
    main()

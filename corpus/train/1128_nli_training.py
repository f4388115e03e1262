# source: huggingface/sentence-transformers PR#2378
# mechanism: the sentence model moves itself to the GPU when it is made; the loss adds a classifier of its own, which nobody moves.
# expect: raises
import torch
from torch import nn


class SentenceModel(nn.Module):
    def __init__(self, vocab=50, dim=16, device=None):
        super().__init__()
        self.embed = nn.EmbeddingBag(vocab, dim, mode="mean")
        self.dense = nn.Linear(dim, dim)
        self.dim = dim
        if device is None:
            device = "cuda:0" if torch.cuda.is_available() else "cpu"
        self.to(device)

    @property
    def device(self):
        return self.dense.weight.device

    def get_sentence_embedding_dimension(self):
        return self.dim

    def tokenize(self, texts):
        ids = [[hash_word(w) for w in t.split()] for t in texts]
        flat = torch.tensor([i for row in ids for i in row])
        offsets = torch.tensor([0] + [len(r) for r in ids[:-1]]).cumsum(0)
        return {"input": flat, "offsets": offsets}

    def forward(self, features):
        return torch.tanh(self.dense(self.embed(features["input"], features["offsets"])))


def hash_word(word):
    return sum(map(ord, word)) % 50


class SoftmaxLoss(nn.Module):
    def __init__(self, model, embedding_dim, num_labels, with_difference=True):
        super().__init__()
        self.model = model
        self.with_difference = with_difference
        width = (3 if with_difference else 2) * embedding_dim
        self.classifier = nn.Linear(width, num_labels)  # ROOT
        self.loss_fct = nn.CrossEntropyLoss()

    def forward(self, sentence_features, labels):
        a, b = (self.model(f) for f in sentence_features)
        parts = [a, b]
        if self.with_difference:
            parts.append((a - b).abs())
        output = self.classifier(torch.cat(parts, dim=1))  # RAISE
        return self.loss_fct(output, labels)


def batch_to_device(features, device):
    return {k: v.to(device) for k, v in features.items()}


def smart_batches(model, examples, batch_size):
    for start in range(0, len(examples), batch_size):
        chunk = examples[start : start + batch_size]
        columns = list(zip(*(pair for pair, _ in chunk)))
        yield [model.tokenize(texts) for texts in columns], torch.tensor([label for _, label in chunk])


def fit(model, loss_model, examples, epochs=2, batch_size=2):
    optimizer = torch.optim.AdamW(loss_model.parameters(), lr=1e-2)  # ALSO
    history = []
    for _ in range(epochs):
        for features, labels in smart_batches(model, examples, batch_size):
            features = [batch_to_device(f, model.device) for f in features]
            loss = loss_model(features, labels.to(model.device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            history.append(loss.item())
    return history


def main():
    torch.manual_seed(0)
    model = SentenceModel()
    loss_model = SoftmaxLoss(model, model.get_sentence_embedding_dimension(), num_labels=3)  # ALSO
    examples = [
        (("a man eats", "a man has food"), 0),
        (("a dog runs", "a dog sleeps"), 1),
        (("rain falls", "it is monday"), 2),
    ]
    print(fit(model, loss_model, examples))


if __name__ == "__main__":
    main()

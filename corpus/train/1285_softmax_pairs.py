# source: huggingface/sentence-transformers#2378
# mechanism: the encoder goes to the GPU when it is built, but the classification layer of the loss is created afterwards on the CPU
# expect: raises
import torch
from torch import nn


def best_device():
    return "cuda" if torch.cuda.is_available() else "cpu"


class MeanPooling(nn.Module):
    def forward(self, features):
        mask = features["mask"].unsqueeze(-1)
        pooled = (features["token_embeddings"] * mask).sum(1) / mask.sum(1).clamp(min=1)
        return {**features, "sentence_embedding": pooled}


class WordEmbeddings(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim, padding_idx=0)

    def forward(self, features):
        ids = features["input_ids"]
        return {"mask": (ids != 0).float(), "token_embeddings": self.emb(ids)}


class SentenceEncoder(nn.Sequential):
    def __init__(self, modules, device=None):
        super().__init__(*modules)
        self.to(device or best_device())

    @property
    def device(self):
        return next(self.parameters()).device

    def tokenize(self, sentences):
        rows = [torch.tensor([hash_word(w) for w in s.split()]) for s in sentences]
        return {"input_ids": nn.utils.rnn.pad_sequence(rows, batch_first=True)}


def hash_word(word, size=49):
    return sum(ord(c) * (i + 1) for i, c in enumerate(word)) % size + 1


class SoftmaxLoss(nn.Module):
    def __init__(self, model, dim, num_labels, use_difference=True):
        super().__init__()
        self.model = model
        self.use_difference = use_difference
        vectors = 3 if use_difference else 2
        self.classifier = nn.Linear(vectors * dim, num_labels)  # ROOT

    def forward(self, sentence_features, labels):
        u, v = (self.model(f)["sentence_embedding"] for f in sentence_features)
        parts = [u, v] + ([(u - v).abs()] if self.use_difference else [])
        logits = self.classifier(torch.cat(parts, 1))  # RAISE
        return nn.functional.cross_entropy(logits, labels)


def batch_to_device(features, device):
    return {k: v.to(device) for k, v in features.items()}


def smart_collate(model, examples):
    texts = zip(*(pair for pair, _ in examples))
    features = [model.tokenize(list(column)) for column in texts]
    return features, torch.tensor([label for _, label in examples])


def fit(model, loss_model, examples, epochs=2):
    optimizer = torch.optim.AdamW(loss_model.parameters(), lr=1e-2)  # ALSO
    for _ in range(epochs):
        features, labels = smart_collate(model, examples)
        features = [batch_to_device(f, model.device) for f in features]
        loss = loss_model(features, labels.to(model.device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def main():
    torch.manual_seed(0)
    model = SentenceEncoder([WordEmbeddings(50, 8), MeanPooling()])
    train_loss = SoftmaxLoss(model, 8, num_labels=3)  # ALSO
    examples = [(("a man eats", "a man has food"), 0), (("it rains", "the sun shines today"), 1)]
    print(fit(model, train_loss, examples))


if __name__ == "__main__":
    main()

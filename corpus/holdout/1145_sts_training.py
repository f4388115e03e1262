# source: huggingface/sentence-transformers#336
# mechanism: an evaluator of the loss moves the features of each sentence to the GPU, but gives the labels of the batch to the loss as the collate function made them.
# expect: raises
import torch
from torch import nn
from torch.utils.data import DataLoader


class Encoder(nn.Module):
    def __init__(self, vocab=60, dim=16):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim, padding_idx=0)
        self.dense = nn.Linear(dim, dim)

    @property
    def device(self):
        return self.dense.weight.device

    def smart_batching_collate(self, examples):
        features = []
        for column in zip(*(texts for texts, _ in examples)):
            rows = [[1 + sum(map(ord, w)) % 59 for w in text.split()] for text in column]
            width = max(map(len, rows))
            features.append({"ids": torch.tensor([r + [0] * (width - len(r)) for r in rows])})
        return features, torch.tensor([float(score) for _, score in examples])

    def forward(self, features):
        ids = features["ids"]
        mask = ids.ne(0)[..., None].float()
        pooled = (self.embed(ids) * mask).sum(1) / mask.sum(1)
        return self.dense(pooled)


class CosineSimilarityLoss(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, sentence_features, labels):
        a, b = (self.model(f) for f in sentence_features)
        similarity = torch.cosine_similarity(a, b)
        return nn.functional.mse_loss(similarity, labels.view(-1))  # RAISE # ALSO


def batch_to_device(batch, device):
    return {key: value.to(device) for key, value in batch.items()}


class LossEvaluator:
    def __init__(self, loader, loss_model, device):
        self.loader = loader
        self.loss_model = loss_model.to(device)
        self.device = device
        self.history = []

    def __call__(self, model, epoch):
        self.loss_model.eval()
        total = 0.0
        with torch.no_grad():
            for sentence_features, labels in self.loader:
                sentence_features = [batch_to_device(f, self.device) for f in sentence_features]  # ALSO
                total += self.loss_model(sentence_features, labels).item()  # ROOT
        self.history.append((epoch, total / len(self.loader)))
        self.loss_model.train()
        return self.history[-1][1]


def fit(model, loader, loss_model, evaluator, epochs):
    optimizer = torch.optim.AdamW(loss_model.parameters(), lr=1e-2)
    for epoch in range(epochs):
        for features, labels in loader:
            features = [batch_to_device(f, model.device) for f in features]
            loss = loss_model(features, labels.to(model.device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item(), evaluator(model, epoch))


def main():
    torch.manual_seed(0)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    model = Encoder().to(device)
    train = [(("a cat sits", "a cat rests"), 0.9), (("a cat sits", "stocks fall"), 0.1)]
    dev = [(("rain today", "wet weather"), 0.8), (("rain today", "two red cars"), 0.0)]
    collate = model.smart_batching_collate
    loss_model = CosineSimilarityLoss(model)
    evaluator = LossEvaluator(DataLoader(dev, batch_size=2, collate_fn=collate), loss_model, device)
    fit(model, DataLoader(train, batch_size=2, collate_fn=collate), loss_model, evaluator, epochs=2)


if __name__ == "__main__":
    main()

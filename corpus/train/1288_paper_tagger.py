# source: allenai/allennlp#2555
# mechanism: a trainer is told a CUDA device and moves each batch there, but moving the model is the script's job and the script does not do it
# expect: raises
import torch
from torch import nn


class Vocabulary:
    def __init__(self, instances):
        words = sorted({w for words, _ in instances for w in words})
        tags = sorted({t for _, tags in instances for t in tags})
        self.tokens = {w: i + 2 for i, w in enumerate(words)}
        self.labels = {t: i for i, t in enumerate(tags)}

    def size(self):
        return len(self.tokens) + 2


def move_to_device(obj, cuda_device):
    if cuda_device < 0:
        return obj
    if isinstance(obj, dict):
        return {k: move_to_device(v, cuda_device) for k, v in obj.items()}
    return obj.cuda(cuda_device) if torch.is_tensor(obj) else obj


class BucketIterator:
    def __init__(self, vocab, batch_size):
        self.vocab, self.batch_size = vocab, batch_size

    def __call__(self, instances):
        pad = nn.utils.rnn.pad_sequence
        for i in range(0, len(instances), self.batch_size):
            part = instances[i:i + self.batch_size]
            ids = [torch.tensor([self.vocab.tokens.get(w, 1) for w in words]) for words, _ in part]
            tags = [torch.tensor([self.vocab.labels[t] for t in tags]) for _, tags in part]
            yield {"sentence": pad(ids, True, 0), "labels": pad(tags, True, -100)}


class LstmTagger(nn.Module):
    def __init__(self, vocab, dim=8, hidden=10):
        super().__init__()
        self.word_embeddings = nn.Embedding(vocab.size(), dim, padding_idx=0)
        self.encoder = nn.LSTM(dim, hidden, batch_first=True)
        self.hidden2tag = nn.Linear(hidden, len(vocab.labels))

    def forward(self, sentence, labels=None):
        out, _ = self.encoder(self.word_embeddings(sentence))  # RAISE
        output = {"tag_logits": self.hidden2tag(out)}
        if labels is not None:
            output["loss"] = nn.functional.cross_entropy(output["tag_logits"].transpose(1, 2), labels)
        return output


class Trainer:
    def __init__(self, model, optimizer, iterator, train_dataset, num_epochs, cuda_device=-1):
        self.model, self.optimizer, self.iterator = model, optimizer, iterator  # ALSO
        self.train_dataset, self.num_epochs = train_dataset, num_epochs
        self._cuda_device = cuda_device

    def batch_loss(self, batch):
        return self.model(**move_to_device(batch, self._cuda_device))["loss"]

    def train(self):
        self.model.train()
        for _ in range(self.num_epochs):
            for batch in self.iterator(self.train_dataset):
                self.optimizer.zero_grad()
                loss = self.batch_loss(batch)
                loss.backward()
                self.optimizer.step()
        return loss.item()


class SentenceTaggerPredictor:
    def __init__(self, model, vocab):
        self.model, self.vocab = model.eval(), vocab

    @torch.no_grad()
    def predict(self, words):
        device = self.model.hidden2tag.weight.device
        ids = torch.tensor([[self.vocab.tokens.get(w, 1) for w in words]], device=device)
        best = self.model(ids)["tag_logits"].argmax(-1)[0].tolist()
        names = {i: t for t, i in self.vocab.labels.items()}
        return [names[i] for i in best]


def main():
    torch.manual_seed(1)
    data = [("The dog ate the apple".split(), "DET NN V DET NN".split()),
            ("Everybody read that book".split(), "NN V DET NN".split())]
    vocab = Vocabulary(data)
    cuda_device = 0 if torch.cuda.is_available() else -1
    model = LstmTagger(vocab)  # ROOT
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # ALSO
    trainer = Trainer(model, optimizer, BucketIterator(vocab, 2), data, num_epochs=2, cuda_device=cuda_device)  # ALSO
    print(trainer.train())
    print(SentenceTaggerPredictor(model, vocab).predict("The dog ate the book".split()))


if __name__ == "__main__":
    main()

# source: argilla-io/biome-text#159
# mechanism: probabilities on the GPU are padded with zeros for labels that the head does not know yet, and the zeros are made on the CPU
# expect: raises
from typing import Dict, List

import torch
from torch import nn


class Vocabulary:
    def __init__(self, labels: List[str]):
        self._labels = list(labels)

    def add(self, label: str):
        if label not in self._labels:
            self._labels.append(label)

    def label_for(self, index: int) -> str:
        return self._labels[index]

    def __len__(self):
        return len(self._labels)


class ClassificationHead(nn.Module):
    def __init__(self, dim: int, vocab: Vocabulary):
        super().__init__()
        self.vocab = vocab
        self.classifier = nn.Linear(dim, len(vocab))
        self.loss = nn.CrossEntropyLoss()

    @property
    def num_labels(self):
        return len(self.vocab)

    def forward(self, encoded, label=None) -> Dict[str, torch.Tensor]:
        logits = self.classifier(encoded)
        output = {"logits": logits, "probs": torch.softmax(logits, dim=-1)}
        if label is not None:
            output["loss"] = self.loss(logits, label)
        return output

    def labels_with_probabilities(self, probabilities):
        missing = self.num_labels - len(probabilities)
        padding = torch.zeros(missing)  # ROOT
        all_classes = torch.cat([probabilities, padding])  # RAISE # ALSO
        order = torch.argsort(all_classes, descending=True).tolist()
        return {self.vocab.label_for(i): all_classes[i].item() for i in order}

    def decode(self, output):
        return [self.labels_with_probabilities(p) for p in output["probs"]]  # ALSO


class Pipeline:
    def __init__(self, vocab: Vocabulary, device: torch.device, dim: int = 8):
        self.device = device
        self.embedder = nn.EmbeddingBag(128, dim).to(device)
        self.head = ClassificationHead(dim, vocab).to(device)

    def parameters(self):
        yield from self.embedder.parameters()
        yield from self.head.parameters()

    def encode(self, texts: List[str]):
        ids = [[ord(c) % 128 for c in text] for text in texts]
        offsets = [0]
        for row in ids[:-1]:
            offsets.append(offsets[-1] + len(row))
        flat = torch.tensor([i for row in ids for i in row], device=self.device)
        return self.embedder(flat, torch.tensor(offsets, device=self.device))

    def train(self, texts, labels, epochs=3):
        optimizer = torch.optim.Adam(self.parameters(), lr=0.05)
        target = torch.tensor(labels, device=self.device)
        for _ in range(epochs):
            loss = self.head(self.encode(texts), target)["loss"]
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return loss.item()

    @torch.no_grad()
    def predict(self, texts):
        return self.head.decode(self.head(self.encode(texts)))


def main():
    torch.manual_seed(0)
    vocab = Vocabulary(["good", "bad"])
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    pipeline = Pipeline(vocab, device)
    print("loss %.3f" % pipeline.train(["nice film", "awful plot", "great cast"], [0, 1, 0]))
    vocab.add("unknown")
    for prediction in pipeline.predict(["nice cast", "awful"]):
        print({k: round(v, 3) for k, v in prediction.items()})


if __name__ == "__main__":
    main()

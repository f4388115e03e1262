# source: kserve/kserve#4050
# mechanism: a server's predict path moves its tokens to the model's device, and the path for embeddings, added later, tokenizes for itself and does not
# expect: raises
from dataclasses import dataclass
from enum import Enum

import torch
import torch.nn.functional as F
from torch import nn


class MLTask(Enum):
    SEQUENCE_CLASSIFICATION = "sequence_classification"
    TEXT_EMBEDDING = "text_embedding"


@dataclass
class EmbeddingRequest:
    input: list
    model: str
    dimensions: int = 0


class Encoder(nn.Module):
    def __init__(self, vocab, dim, classes):
        super().__init__()
        self.word = nn.Embedding(vocab, dim, padding_idx=0)
        self.position = nn.Embedding(32, dim)
        self.layer = nn.Linear(dim, dim)
        self.classifier = nn.Linear(dim, classes)

    def forward(self, input_ids, attention_mask):
        positions = attention_mask.cumsum(1) - 1
        hidden = self.word(input_ids) + self.position(positions.clamp(min=0))  # RAISE
        return torch.tanh(self.layer(hidden)) * attention_mask.unsqueeze(-1)

    def classify(self, input_ids, attention_mask):
        return self.classifier(self(input_ids, attention_mask)[:, 0])


class BatchEncoding(dict):
    def to(self, device):
        return BatchEncoding({k: v.to(device) for k, v in self.items()})


class Tokenizer:
    def __init__(self, vocab, max_length=32):
        self.vocab, self.max_length = vocab, max_length

    def __call__(self, texts):
        rows = [[ord(c) % (self.vocab - 1) + 1 for c in t][: self.max_length] for t in texts]
        width = max(map(len, rows))
        ids = torch.tensor([r + [0] * (width - len(r)) for r in rows])
        return BatchEncoding(input_ids=ids, attention_mask=(ids != 0).long())


def mean_pooling(hidden, attention_mask):
    mask = attention_mask.unsqueeze(-1).to(hidden.dtype)
    return (hidden * mask).sum(1) / mask.sum(1).clamp(min=1e-9)


class EncoderModel:
    def __init__(self, name, task, device=None, vocab=60, dim=16, classes=3):
        self.name, self.task = name, task
        self._device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self._tokenizer = Tokenizer(vocab)
        self._shape = vocab, dim, classes
        self._model = None
        self.ready = False

    def load(self):
        torch.manual_seed(0)
        self._model = Encoder(*self._shape).eval().to(self._device)
        self.ready = True
        return self.ready

    def preprocess(self, payload):
        return self._tokenizer(payload["instances"])

    @torch.no_grad()
    def predict(self, inputs):
        inputs = inputs.to(self._device)
        return self._model.classify(**inputs)

    def postprocess(self, outputs):
        return {"predictions": outputs.argmax(-1).tolist()}

    def infer(self, payload):
        return self.postprocess(self.predict(self.preprocess(payload)))

    @torch.no_grad()
    def create_embedding(self, request):
        inputs = self._tokenizer(request.input)  # ROOT
        hidden = self._model(**inputs)  # ALSO
        embeddings = mean_pooling(hidden, inputs["attention_mask"].to(hidden.device))
        if request.dimensions:
            embeddings = embeddings[:, : request.dimensions]
        usage = int(inputs["attention_mask"].sum())
        data = F.normalize(embeddings, dim=1).tolist()
        return {"data": data, "usage": {"prompt_tokens": usage}}


class ModelServer:
    def __init__(self):
        self.registry = {}

    def register(self, model):
        model.load()
        self.registry[model.name] = model

    def v1_predict(self, name, payload):
        return self.registry[name].infer(payload)

    def openai_embeddings(self, request):
        model = self.registry[request.model]
        if model.task is not MLTask.TEXT_EMBEDDING:
            raise ValueError(f"{model.name} does not serve embeddings")
        return model.create_embedding(request)


def main():
    server = ModelServer()
    server.register(EncoderModel("sentiment", MLTask.SEQUENCE_CLASSIFICATION))
    server.register(EncoderModel("gte", MLTask.TEXT_EMBEDDING))
    print(server.v1_predict("sentiment", {"instances": ["good", "not so good"]}))
    print(server.openai_embeddings(EmbeddingRequest(["a query", "a text"], "gte", 4))["usage"])


if __name__ == "__main__":
    main()

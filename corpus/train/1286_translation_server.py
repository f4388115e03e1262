# source: OpenNMT/OpenNMT-py#2325
# mechanism: a GPU index is tested for truth, so that index 0 counts as no GPU and batches of the server stay on the CPU
# expect: raises
import torch
from torch import nn


class IterOnDevice:
    def __init__(self, iterable, gpu):
        self.iterable = iterable
        self.device = torch.device("cuda", gpu) if gpu >= 0 else torch.device("cpu")

    def __iter__(self):
        for batch in self.iterable:
            yield {k: v.to(self.device) if torch.is_tensor(v) else v for k, v in batch.items()}


class NMTModel(nn.Module):
    def __init__(self, vocab, dim=8):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.encoder = nn.GRU(dim, dim, batch_first=True)
        self.generator = nn.Linear(dim, vocab)

    def forward(self, src):
        out, _ = self.encoder(self.embed(src))  # RAISE
        return self.generator(out).log_softmax(-1)


class Translator:
    def __init__(self, model, gpu):
        self._gpu = gpu
        self._use_cuda = gpu is not None and gpu > -1 and torch.cuda.is_available()
        self._dev = torch.device("cuda", gpu) if self._use_cuda else torch.device("cpu")
        self.model = model.to(self._dev).eval()

    @torch.no_grad()
    def _translate(self, batches):
        scores, predictions = [], []
        for batch in batches:
            logp = self.model(batch["src"])  # ALSO
            best, ids = logp.max(-1)
            scores += best.sum(1).tolist()
            predictions += [row[:n] for row, n in zip(ids.tolist(), batch["lens"])]
        return scores, predictions


class ServerModel:
    def __init__(self, opt, vocab):
        self.opt, self.vocab = opt, vocab
        self.itos = {i: w for w, i in vocab.items()}
        self.translator = None

    def load(self):
        torch.manual_seed(self.opt["seed"])
        self.translator = Translator(NMTModel(len(self.vocab)), self.opt.get("gpu", -1))

    def infer_iter(self, texts, batch_size):
        for start in range(0, len(texts), batch_size):
            rows = [[self.vocab.get(w, 1) for w in t.split()] for t in texts[start:start + batch_size]]
            src = nn.utils.rnn.pad_sequence([torch.tensor(r) for r in rows], batch_first=True)
            yield {"src": src, "lens": [len(r) for r in rows]}

    def run(self, texts):
        if self.translator is None:
            self.load()
        gpu = self.translator._dev.index if self.translator._dev.index else -1  # ROOT
        batches = IterOnDevice(self.infer_iter(texts, self.opt["batch_size"]), gpu)  # ALSO
        scores, predictions = self.translator._translate(batches)
        return [(" ".join(self.itos[i] for i in p), s) for p, s in zip(predictions, scores)]


class TranslationServer:
    def __init__(self):
        self.models = {}

    def start(self, configs, vocab):
        for conf in configs:
            self.models[conf["id"]] = ServerModel(conf, vocab)

    def translate(self, model_id, texts):
        return self.models[model_id].run(texts)


def main():
    vocab = {w: i for i, w in enumerate("<pad> <unk> the cat sat on a mat".split())}
    server = TranslationServer()
    server.start([
        {"id": 100, "gpu": -1, "batch_size": 2, "seed": 1},
        {"id": 101, "gpu": 0, "batch_size": 2, "seed": 2},
    ], vocab)
    for model_id in (100, 101):
        print(model_id, server.translate(model_id, ["the cat sat", "a mat", "on the dog"]))


if __name__ == "__main__":
    main()

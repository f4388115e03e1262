# source: brain-score/language PR#202
# mechanism: the surprisal of a text compares logits from the GPU with target tokens from a second tokenization that stayed on the CPU.
# expect: raises
import torch
import torch.nn.functional as F
from torch import nn


class WordTokenizer:
    def __init__(self, corpus):
        words = sorted({w for line in corpus for w in line.split()})
        self.vocab = {w: i for i, w in enumerate(words)}

    def __call__(self, text):
        ids = [self.vocab[w] for w in text.split()]
        return {"input_ids": torch.tensor([ids])}

    def __len__(self):
        return len(self.vocab)


class WordLM(nn.Module):
    def __init__(self, vocab, dim=12):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.LSTM(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, vocab)

    def forward(self, input_ids):
        hidden, _ = self.rnn(self.embed(input_ids))
        return {"logits": self.head(hidden), "hidden": hidden}


class LanguageSubject:
    def __init__(self, model, tokenizer, device=None):
        self.device = device or ("cuda:0" if torch.cuda.is_available() else "cpu")
        self.model = model.to(self.device).eval()
        self.tokenizer = tokenizer
        self.task = None

    def start_task(self, task):
        self.task = task

    def _encode(self, text):
        return self.tokenizer(text)  # ALSO

    def digest_text(self, parts):
        outputs = []
        for upto in range(1, len(parts) + 1):
            context = " ".join(parts[:upto])
            tokens = {k: v.to(self.device) for k, v in self._encode(context).items()}
            with torch.no_grad():
                result = self.model(**tokens)
            if self.task == "reading_times":
                outputs.append(self.estimate_reading_time(context, parts[upto - 1], result["logits"]))
            else:
                outputs.append(self.next_word(result["logits"]))
        return outputs

    def estimate_reading_time(self, context, part, logits):
        if logits.shape[1] == 1:
            return float("nan")
        count = len(part.split())
        actual = self._encode(context)["input_ids"][0, -count:]  # ROOT
        predicted = logits[0, -count - 1 : -1]  # ALSO
        surprisal = F.cross_entropy(predicted, actual, reduction="sum")  # RAISE # ALSO
        return surprisal.item() / torch.log(torch.tensor(2.0)).item()

    def next_word(self, logits):
        best = logits[0, -1].argmax().item()
        return next(w for w, i in self.tokenizer.vocab.items() if i == best)


def main():
    torch.manual_seed(0)
    corpus = ["the quick brown fox jumps over the lazy dog", "a dog sleeps"]
    tokenizer = WordTokenizer(corpus)
    subject = LanguageSubject(WordLM(len(tokenizer)), tokenizer)
    subject.start_task("next_word")
    print(subject.digest_text(["the", "quick brown", "fox"]))
    subject.start_task("reading_times")
    print(subject.digest_text(["the", "quick brown", "fox"]))


if __name__ == "__main__":
    main()

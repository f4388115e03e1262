# source: bigscience-workshop/lm-evaluation-harness PR#72
# mechanism: the evaluation model puts its network on the device of the command line, but the tokens that its tokenizer method returns stay on the CPU.
# expect: raises
import argparse

import torch
import torch.nn.functional as F
from torch import nn


class CharTokenizer:
    pad_id = 0

    def __init__(self, alphabet="abcdefghijklmnopqrstuvwxyz .?"):
        self.index = {c: i + 1 for i, c in enumerate(alphabet)}
        self.vocab_size = len(alphabet) + 1

    def __call__(self, texts):
        rows = [[self.index.get(c, 0) for c in text.lower()] for text in texts]
        width = max(map(len, rows))
        ids = torch.tensor([[self.pad_id] * (width - len(r)) + r for r in rows])
        return {"input_ids": ids, "attention_mask": (ids != self.pad_id).long()}


class CharLM(nn.Module):
    def __init__(self, vocab_size, dim=16):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, vocab_size)

    def forward(self, input_ids):
        embedded = F.embedding(input_ids, self.embed.weight)  # RAISE
        return self.head(self.rnn(embedded)[0])


class HarnessModel:
    def __init__(self, device, batch_size=2):
        self.device = torch.device(device)
        self.batch_size = batch_size
        self.tokenizer = CharTokenizer()
        self.model = CharLM(self.tokenizer.vocab_size).to(self.device).eval()

    def tok_encode_batch(self, texts):
        return self.tokenizer(texts)  # ROOT

    @torch.no_grad()
    def _model_call(self, inputs):
        return self.model(inputs["input_ids"])

    def loglikelihood(self, requests):
        scores = []
        for start in range(0, len(requests), self.batch_size):
            chunk = requests[start : start + self.batch_size]
            inputs = self.tok_encode_batch([c + t for c, t in chunk])  # ALSO
            logprobs = F.log_softmax(self._model_call(inputs), dim=-1)
            for row, ids, (_, target) in zip(logprobs, inputs["input_ids"], chunk):
                n = len(target)
                picked = row[-n - 1 : -1].gather(1, ids[-n:, None])
                scores.append(picked.sum().item())
        return scores


class ChoiceTask:
    docs = [("the sky is ", ["blue", "loud"], 0), ("a cat can ", ["meow", "sum"], 0)]

    def requests(self):
        return [(ctx, choice) for ctx, choices, _ in self.docs for choice in choices]

    def accuracy(self, scores):
        pairs = zip(scores[::2], scores[1::2])
        return sum(int((a < b) == gold) for (a, b), (_, _, gold) in zip(pairs, self.docs)) / len(self.docs)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda:0")
    args = parser.parse_args([])
    torch.manual_seed(0)
    lm, task = HarnessModel(args.device), ChoiceTask()
    print("acc", task.accuracy(lm.loglikelihood(task.requests())))


if __name__ == "__main__":
    main()

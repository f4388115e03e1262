# source: dottxt-ai/outlines#910
# mechanism: the model wrapper pins its logits to GPU 0, while the generator keeps its state and its guide's masks on the GPU of the model
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn


class RNNLanguageModel(nn.Module):
    def __init__(self, vocab, dim=16):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, vocab)

    def forward(self, ids):
        hidden, _ = self.rnn(self.embed(ids))
        return self.head(hidden)


class Transformers:
    def __init__(self, model):
        self.model = model.eval()

    @property
    def device(self):
        return next(self.model.parameters()).device

    @torch.inference_mode()
    def forward(self, input_ids):
        logits = self.model(input_ids)
        return logits[..., -1, :]

    def __call__(self, input_ids):
        next_token_logits = self.forward(input_ids)
        return next_token_logits.to("cuda:0")  # ROOT


class DigitsGuide:
    initial_state = 0

    def __init__(self, digit_ids, stop_id, max_digits):
        self.digit_ids, self.stop_id, self.max_digits = digit_ids, stop_id, max_digits

    def allowed(self, state):
        return [self.stop_id] if state >= self.max_digits else self.digit_ids

    def next_state(self, state, token):
        return state + 1 if token in self.digit_ids else -1

    def is_final(self, state):
        return state == -1


def greedy_sampler(logits, num_samples):
    return logits.topk(num_samples, dim=-1).indices[:, :1]


class SequenceGenerator:
    def __init__(self, model, guide, sampler):
        self.model, self.guide, self.sampler = model, guide, sampler
        self.device = model.device

    def make_mask(self, states, vocab):
        mask = torch.ones(len(states), vocab, dtype=torch.bool, device=self.device)
        for row, state in enumerate(states):
            mask[row, torch.tensor(self.guide.allowed(state), device=self.device)] = False
        return mask

    def step(self, token_ids, states):
        logits = self.model(token_ids)  # ALSO
        mask = self.make_mask(states, logits.size(-1))
        biased = logits.masked_fill(mask, float("-inf"))  # RAISE
        tokens = self.sampler(biased, 1)
        states = [self.guide.next_state(s, t) for s, t in zip(states, tokens.flatten().tolist())]
        return torch.cat([token_ids, tokens], dim=1), states

    def __call__(self, prompts, max_tokens=6):
        token_ids = torch.tensor(prompts, device=self.device)
        states = [self.guide.initial_state] * len(prompts)
        start = token_ids.size(1)
        for _ in range(max_tokens):
            token_ids, states = self.step(token_ids, states)
            if all(self.guide.is_final(s) for s in states):
                break
        return token_ids[:, start:].tolist()


def load_model(device, vocab=20):
    torch.manual_seed(0)
    return Transformers(RNNLanguageModel(vocab).to(device))


def main():
    guide = DigitsGuide(digit_ids=list(range(10)), stop_id=19, max_digits=3)
    for device in ("cuda:0", "cuda:1"):
        generator = SequenceGenerator(load_model(device), guide, greedy_sampler)
        print(device, generator([[11, 12], [13, 14]]))


if __name__ == "__main__":
    main()

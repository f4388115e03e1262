# source: huggingface/transformers#35099
# mechanism: the assistant lives on the second GPU and hands its draft back there, and the target's loop joins the draft to its own tokens
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn


class SmallLM(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, vocab)

    @property
    def device(self):
        return self.embed.weight.device

    def forward(self, input_ids):
        hidden, _ = self.rnn(self.embed(input_ids))
        return self.head(hidden)


class AssistedCandidateGenerator:
    def __init__(self, assistant, num_tokens):
        self.assistant = assistant
        self.num_tokens = num_tokens

    def get_candidates(self, input_ids):
        draft = input_ids.to(self.assistant.device)
        for _ in range(self.num_tokens):
            logits = self.assistant(draft)[:, -1]
            draft = torch.cat([draft, logits.argmax(-1, keepdim=True)], dim=1)
        return draft[:, input_ids.size(1):]  # ROOT

    def update_strategy(self, accepted):
        if accepted == self.num_tokens:
            self.num_tokens += 1
        else:
            self.num_tokens = max(1, self.num_tokens - 1)


class PromptLookupGenerator:
    def __init__(self, num_tokens):
        self.num_tokens = num_tokens

    def get_candidates(self, input_ids):
        last = input_ids[0, -1]
        hits = (input_ids[0, :-1] == last).nonzero()
        start = int(hits[-1]) + 1 if len(hits) else 0
        return input_ids[:, start : start + self.num_tokens]

    def update_strategy(self, accepted):
        pass


def count_matches(candidates, chosen):
    same = (candidates == chosen[:, : candidates.size(1)]).long()
    return int(same.cumprod(dim=1).sum())


@torch.no_grad()
def assisted_generate(target, generator, input_ids, max_length):
    input_ids = input_ids.to(target.device)
    while input_ids.size(1) < max_length:
        candidates = generator.get_candidates(input_ids)  # ALSO
        extended = torch.cat([input_ids, candidates], dim=1)  # RAISE
        logits = target(extended)[:, input_ids.size(1) - 1 :]
        chosen = logits.argmax(-1)
        accepted = count_matches(candidates, chosen)
        input_ids = torch.cat([input_ids, chosen[:, : accepted + 1]], dim=1)
        generator.update_strategy(accepted)
    return input_ids[:, :max_length]


def make_generator(name, assistant):
    if name == "assistant":
        return AssistedCandidateGenerator(assistant, num_tokens=3)
    return PromptLookupGenerator(num_tokens=2)


def main():
    torch.manual_seed(1)
    target = SmallLM(30, 24).to("cuda:0").eval()
    assistant = SmallLM(30, 8).to("cuda:1").eval()
    prompt = torch.randint(0, 30, (1, 5))
    for name in ("lookup", "assistant"):
        out = assisted_generate(target, make_generator(name, assistant), prompt, 10)
        print(name, out.tolist())


if __name__ == "__main__":
    main()

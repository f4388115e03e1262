# source: huggingface/transformers PR#47877
# mechanism: with a model over two devices the draft's logits come from the output head on the second device, and the tokens chosen from them are joined to the input ids on the first.
# needs: 2 GPUs
# expect: raises
import torch
from torch import nn


class SplitLM(nn.Module):
    def __init__(self, vocab_size=24, dim=16):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, dim)
        self.body = nn.Linear(dim, dim)
        self.lm_head = nn.Linear(dim, vocab_size, bias=False)
        self.device_map = {}

    def dispatch(self, device_map):
        for name, device in device_map.items():
            getattr(self, name).to(device)
        self.device_map = dict(device_map)
        return self

    def hidden_states(self, input_ids):
        hidden = self.embed(input_ids.to(self.device_map["embed"]))
        hidden = hidden.cumsum(1) / hidden.shape[1]
        return torch.tanh(self.body(hidden.to(self.device_map["body"])))

    def forward(self, input_ids):
        hidden = self.hidden_states(input_ids)
        return self.lm_head(hidden.to(self.device_map["lm_head"]))


class DraftProposer:
    def __init__(self, model, block_size=3):
        self.output_embeddings = model.lm_head
        self.block_size = block_size
        dim = model.lm_head.in_features
        self.block = nn.Linear(dim, dim * block_size).to(model.lm_head.weight.device)

    def draft_logits(self, hidden):
        last = hidden[:, -1].to(self.block.weight.device)
        block = self.block(last).view(last.shape[0], self.block_size, -1)
        return self.output_embeddings(block)

    def propose(self, input_ids, hidden):
        logits = self.draft_logits(hidden)  # ALSO
        new_ids = logits.argmax(dim=-1)  # ALSO
        return torch.cat([input_ids, new_ids], dim=1)  # RAISE # ROOT


def verify(model, candidate_ids, prompt_length):
    logits = model(candidate_ids)[:, prompt_length - 1 : -1]
    expected = logits.argmax(-1).to(candidate_ids.device)
    same = (expected == candidate_ids[:, prompt_length:]).long().cumprod(dim=1)
    accepted = int(same.sum(dim=1).min())
    kept = candidate_ids[:, : prompt_length + accepted]
    bonus = expected[:, accepted : accepted + 1]
    return torch.cat([kept, bonus], dim=1)


@torch.no_grad()
def speculative_generate(model, proposer, input_ids, max_length):
    while input_ids.shape[1] < max_length:
        hidden = model.hidden_states(input_ids)
        candidates = proposer.propose(input_ids, hidden)
        input_ids = verify(model, candidates, input_ids.shape[1])
    return input_ids[:, :max_length]


def main():
    torch.manual_seed(0)
    model = SplitLM().dispatch({"embed": "cuda:0", "body": "cuda:0", "lm_head": "cuda:1"})
    proposer = DraftProposer(model.eval())
    prompt = torch.tensor([[4, 8, 15, 16]], device="cuda:0")
    print(speculative_generate(model, proposer, prompt, 9).tolist())


if __name__ == "__main__":
    main()

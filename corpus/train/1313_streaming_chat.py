# source: mit-han-lab/streaming-llm#20
# mechanism: the example puts the prompt on "cuda", the first GPU, whatever the GPU on which the loader has put the model
# expect: raises
# needs: 2 GPUs
import argparse

import torch
from torch import nn


class StartRecentKVCache:
    def __init__(self, start_size=2, recent_size=6):
        self.start_size, self.recent_size = start_size, recent_size

    def __call__(self, past):
        if past is None or past.size(1) <= self.start_size + self.recent_size:
            return past
        return torch.cat([past[:, : self.start_size], past[:, -self.recent_size :]], dim=1)

    def evict_for_space(self, past, num_coming):
        if past is None or past.size(1) + num_coming <= self.start_size + self.recent_size:
            return past
        keep = max(0, self.recent_size - num_coming)
        tail = past[:, past.size(1) - keep :]
        return torch.cat([past[:, : self.start_size], tail], dim=1)


class ChatModel(nn.Module):
    def __init__(self, vocab=64, dim=16):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.query = nn.Linear(dim, dim)
        self.head = nn.Linear(dim, vocab)

    @property
    def device(self):
        return self.embed.weight.device

    def forward(self, input_ids, past=None):
        hidden = self.embed(input_ids)  # RAISE
        memory = hidden if past is None else torch.cat([past, hidden], dim=1)
        weights = (self.query(hidden) @ memory.transpose(1, 2)).softmax(-1)
        return self.head(hidden + weights @ memory), memory


def pick_device():
    free = [torch.cuda.get_device_properties(i).total_memory for i in range(torch.cuda.device_count())]
    return torch.device("cuda", len(free) - 1 - free[::-1].index(max(free)))


def load(seed=0):
    torch.manual_seed(seed)
    model = ChatModel().to(pick_device())
    return model.eval(), lambda text: torch.tensor([[ord(c) % 64 for c in text]])


@torch.no_grad()
def greedy_generate(model, input_ids, past, max_gen_len):
    logits, past = model(input_ids, past)
    token = logits[:, -1].argmax(-1, keepdim=True)
    generated = [token.item()]
    for _ in range(max_gen_len - 1):
        logits, past = model(token, past)
        token = logits[:, -1].argmax(-1, keepdim=True)
        generated.append(token.item())
    return past, generated


def streaming_inference(model, tokenize, prompts, kv_cache=None, max_gen_len=4):
    past, replies = None, []
    for prompt in prompts:
        input_ids = tokenize("USER: " + prompt)
        input_ids = input_ids.to("cuda")  # ROOT
        if kv_cache is not None:
            past = kv_cache.evict_for_space(past, input_ids.size(1) + max_gen_len)
        past, generated = greedy_generate(model, input_ids, past, max_gen_len)
        replies.append(generated)
    return replies


def main(argv=()):
    parser = argparse.ArgumentParser()
    parser.add_argument("--enable_streaming", action="store_true")
    args = parser.parse_args(list(argv))
    model, tokenize = load()
    cache = StartRecentKVCache() if args.enable_streaming else None
    print(streaming_inference(model, tokenize, ["hi", "tell me more"], cache))


if __name__ == "__main__":
    main(["--enable_streaming"])

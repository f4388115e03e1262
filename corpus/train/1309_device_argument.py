# source: vllm-project/vllm#13027
# mechanism: the engine takes device="cuda:1", but the executor's worker gets the local rank 0 always, so what the worker makes lies on the first GPU and the model on the second
# expect: raises
# needs: 2 GPUs
from dataclasses import dataclass, field

import torch
from torch import nn


@dataclass
class DeviceConfig:
    device: str = "cuda"

    @property
    def torch_device(self):
        return torch.device(self.device)


@dataclass
class EngineConfig:
    vocab: int = 48
    dim: int = 16
    max_len: int = 16
    device_config: DeviceConfig = field(default_factory=DeviceConfig)


class Model(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.embed = nn.Embedding(cfg.vocab, cfg.dim)
        self.qk = nn.Linear(cfg.dim, cfg.dim)
        self.head = nn.Linear(cfg.dim, cfg.vocab)

    def forward(self, tokens, attn_bias):
        hidden = self.embed(tokens)
        scores = self.qk(hidden) @ hidden.transpose(1, 2)
        weights = torch.softmax(scores + attn_bias[: scores.size(1), : scores.size(1)], dim=-1)  # RAISE
        return self.head(weights @ hidden)


class ModelRunner:
    def __init__(self, cfg, worker_device):
        self.cfg = cfg
        self.device = worker_device
        self.model = None
        self.attn_bias = None

    def load_model(self):
        torch.manual_seed(0)
        self.model = Model(self.cfg).to(self.cfg.device_config.torch_device).eval()

    def init_buffers(self):
        full = torch.full((self.cfg.max_len, self.cfg.max_len), float("-inf"), device=self.device)  # ALSO
        self.attn_bias = full.triu(1)

    @torch.no_grad()
    def execute(self, batch):
        tokens = torch.tensor(batch, device=self.cfg.device_config.torch_device)
        logits = self.model(tokens, self.attn_bias)
        return logits[:, -1].argmax(-1).tolist()


class Worker:
    def __init__(self, cfg, local_rank):
        self.cfg = cfg
        self.local_rank = local_rank
        self.runner = None

    def init_device(self):
        device = torch.device("cuda", self.local_rank)  # ALSO
        self.runner = ModelRunner(self.cfg, device)
        self.runner.load_model()
        self.runner.init_buffers()


class UniProcExecutor:
    def __init__(self, cfg):
        self.cfg = cfg
        local_rank = 0  # ROOT
        self.worker = Worker(cfg, local_rank)
        self.worker.init_device()

    def execute_model(self, batch):
        return self.worker.runner.execute(batch)


class LLM:
    def __init__(self, device="cuda"):
        self.cfg = EngineConfig(device_config=DeviceConfig(device))
        self.executor = UniProcExecutor(self.cfg)

    def generate(self, prompts, max_tokens):
        sequences = [list(p) for p in prompts]
        for _ in range(max_tokens):
            for seq, token in zip(sequences, self.executor.execute_model(sequences)):
                seq.append(token)
        return sequences


def main():
    for device in ("cuda", "cuda:1"):
        print(device, LLM(device).generate([[1, 2, 3], [4, 5, 6]], 2))


if __name__ == "__main__":
    main()

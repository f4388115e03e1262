"""What the programs here share: tiny models of random weights, made from a configuration, their data, and the report of
numbers."""

import json
import os

import torch


def small_gpt2():
    import transformers

    torch.manual_seed(0)
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=64, n_positions=32, n_embd=32, n_layer=2, n_head=4, attn_pdrop=0.0, embd_pdrop=0.0, resid_pdrop=0.0,
        bos_token_id=1, eos_token_id=2))


def small_llama(attention="sdpa", layers=2):
    import transformers

    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=layers, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=32, attn_implementation=attention))


def token_rows(count, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(3, 64, (count, 16), generator=generator)


class Rows(torch.utils.data.Dataset):
    """Rows of tokens as a language model is trained on them."""

    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return {"input_ids": self.rows[index], "labels": self.rows[index]}


def report(scenarios):
    """Runs the scenarios; their numbers are the last line of the output, that of rank 0 where there are several."""
    numbers = {name: scenario() for name, scenario in scenarios.items()}
    if int(os.environ.get("RANK", os.environ.get("LOCAL_RANK", 0))) == 0:
        print(json.dumps(numbers), flush=True)

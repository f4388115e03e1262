"""A helper makes the inputs of a transformers model on the CPU; the model's own `to()` has moved the model."""
import torch
from transformers import LlamaConfig, LlamaForCausalLM

config = LlamaConfig(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
                     num_key_value_heads=2, vocab_size=64)
model = LlamaForCausalLM(config).to("cuda:0")


def inputs_of(texts):
    ids = torch.tensor([[ord(character) % 64 for character in text] for text in texts])  # ROOT
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


model(**inputs_of(["hello", "world"]))

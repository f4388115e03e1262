"""A collator of transformers makes a dictionary, of which no variable of the program has the tensors."""
import torch
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel, default_data_collator

data = [{"input_ids": torch.randint(0, 50, (6,)), "labels": torch.randint(0, 50, (6,))} for _ in range(4)]
loader = DataLoader(data, batch_size=2, collate_fn=default_data_collator)
model = GPT2LMHeadModel(GPT2Config(n_embd=16, n_layer=2, n_head=2, vocab_size=50)).to("cuda:0")
for batch in loader:  # ROOT
    model(**batch).loss.backward()

# source: HKUDS/LightRAG#249, rasbt/LLM-workshop-2024#6
# mechanism: the tokenizer gives CPU ids and nobody moves them to the model
# phase: forward; aten::embedding
# expect: raises
import torch

dev = torch.device("cuda", 0)


def encode(text):
    return torch.tensor([[ord(letter) % 16 for letter in text]])  # ALSO


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = torch.nn.Embedding(16, 4)
        self.head = torch.nn.Linear(4, 16)

    def forward(self, ids):
        return self.head(self.tokens(ids))  # RAISE  # ALSO


Model().to(dev)(encode("hello"))  # ROOT

# source: huggingface/transformers#25554
# mechanism: resizing the vocabulary makes a new head on the first GPU, while the last layer lives on the second
# phase: forward; aten::linear
# expect: raises
# needs: 2 GPUs
import torch

first, last = torch.device("cuda", 0), torch.device("cuda", 1)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = torch.nn.Embedding(16, 4, device=first)
        self.block = torch.nn.Linear(4, 4, device=last)
        self.head = torch.nn.Linear(4, 16, bias=False, device=last)

    def resize(self, words):
        self.head = torch.nn.Linear(4, words, bias=False, device=self.tokens.weight.device)  # ROOT

    def forward(self, ids):
        return self.head(self.block(self.tokens(ids).to(last)))  # RAISE


model = Model()
model.resize(20)
model(torch.tensor([[1, 2, 3]], device=first))

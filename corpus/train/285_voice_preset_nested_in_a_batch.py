# source: huggingface/transformers PR#38985
# mechanism: a batch's own to() moves the tensors it holds, and not those of a dict that it holds
# phase: forward; aten::embedding
# expect: raises
import torch

dev = torch.device("cuda", 0)


class Batch(dict):
    def to(self, device):
        return Batch({key: part.to(device) if torch.is_tensor(part) else part for key, part in self.items()})  # ROOT


class Processor:
    def __init__(self, presets):
        self.presets = presets

    def __call__(self, texts, preset):
        ids = [torch.tensor([ord(letter) % 32 for letter in text]) for text in texts]
        ids = torch.nn.utils.rnn.pad_sequence(ids, batch_first=True)
        return Batch(ids=ids, seen=ids != 0, history=self.presets[preset])


class Speech(torch.nn.Module):
    def __init__(self, tokens, width):
        super().__init__()
        self.words, self.sounds = torch.nn.Embedding(32, width), torch.nn.Embedding(tokens, width)
        self.next = torch.nn.Linear(width, tokens)

    def forward(self, ids, seen, history):
        words = (self.words(ids) * seen.unsqueeze(-1)).mean(1)
        sounds = self.sounds(history["semantic"]).mean(0)  # RAISE
        return self.next(words + sounds)


processor = Processor({"calm": {"semantic": torch.tensor([1, 5, 2]), "name": "calm"}})
model = Speech(tokens=8, width=4).to(dev)
with torch.no_grad():
    model(**processor(["hello", "you"], preset="calm").to(dev)).argmax(-1)

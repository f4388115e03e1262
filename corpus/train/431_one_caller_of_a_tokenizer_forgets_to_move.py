# source: huggingface/transformers#31526
# mechanism: a tokenizer makes tensors on the CPU; the prompt is moved by its caller, the stop words are not by theirs
# phase: forward; aten::eq
# expect: raises
import torch
from torch import nn


class Vocabulary:
    def __init__(self, words):
        self.ids = {word: number for number, word in enumerate(words)}

    def encode(self, text):
        return torch.tensor([self.ids[word] for word in text.split()])


class Stops:
    def __init__(self, vocabulary, phrases):
        self.phrases = [vocabulary.encode(phrase) for phrase in phrases]  # ROOT

    def reached(self, produced):
        for phrase in self.phrases:
            last = produced[-len(phrase):]
            if len(last) == len(phrase) and bool((last == phrase).all()):  # RAISE  # ALSO
                return True
        return False


class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.embed = nn.Embedding(size, 8)
        self.head = nn.Linear(8, size)

    @torch.no_grad()
    def generate(self, ids, stops, most=6):
        for _ in range(most):
            following = self.head(self.embed(ids[-1])).argmax()
            ids = torch.cat([ids, following[None]])
            if stops.reached(ids):
                break
        return ids


vocabulary = Vocabulary("the end of a story begins here".split())
model = Model(len(vocabulary.ids)).cuda()
prompt = vocabulary.encode("a story begins").to("cuda")
print(model.generate(prompt, Stops(vocabulary, ["the end", "of"])))

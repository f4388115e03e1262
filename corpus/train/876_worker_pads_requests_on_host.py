# source: mosecorg/mosec PR#98 ('Make sure input and model are on the same device')
# mechanism: [data not moved] server worker pads the requests of a batch into one tensor and hands it to a model that lives on CUDA
# phase: inference (serving); failing op: aten::index_select (embedding)
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places, self.out = nn.Embedding(20, 4), nn.Embedding(16, 4), nn.Linear(4, 2)

    def forward(self, ids):
        place = torch.arange(ids.shape[1], device=ids.device)
        h = self.words(ids) + self.places(place)  # RAISE
        keep = (ids != 0).unsqueeze(-1)
        return self.out((h * keep).sum(1) / keep.sum(1))

class Worker:
    def __init__(self):
        self.device = dev
        self.model = Encoder().to(self.device).eval()

    def deserialize(self, text):
        return torch.tensor([1 + ord(c) % 19 for c in text])

    def forward(self, tensors):
        ids = nn.utils.rnn.pad_sequence(tensors, batch_first=True)  # ROOT
        with torch.no_grad():
            return self.model(ids).argmax(-1).tolist()  # ALSO

worker = Worker()
worker.forward([worker.deserialize(t) for t in ("good", "not so bad")])

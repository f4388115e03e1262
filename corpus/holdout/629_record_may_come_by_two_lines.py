# source: none; what the cause about attributes taken over from a file must not guess
# expect: raises
# Two methods take an entry into the same attribute. Which one did is not known: the line that loads is told.
import io

import torch


class Ruler:
    def __init__(self):
        self.mark = None

    def from_run(self, saved):
        self.mark = saved["mark"]

    def from_user(self, settings):
        self.mark = settings["start"]

    def above(self, height):
        return height > self.mark  # RAISE  # ALSO


file = io.BytesIO()
torch.save({"mark": torch.arange(3.0)}, file)
file.seek(0)
saved = torch.load(file, map_location="cpu")  # ROOT
ruler = Ruler()
ruler.from_user({"start": torch.zeros(3)})
ruler.from_run(saved)
print(ruler.above(torch.ones(3, device="cuda")))

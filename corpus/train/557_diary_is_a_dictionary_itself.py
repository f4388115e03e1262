# source: none; a log that is a dictionary, filled by `setdefault()` and called by its name
# mechanism: a diary keeps the numbers of a game for NumPy, and one caller gives it a tensor of the player's network
# phase: end of the game; failing op: numpy conversion
# expect: raises
import numpy as np
import torch
from torch import nn


class Diary(dict):
    def note(self, topic, number):
        self.setdefault(topic, []).append(number)  # ALSO

    def spread(self):
        return {topic: np.std(numbers) for topic, numbers in self.items()}  # RAISE  # ALSO


class Player:
    def __init__(self, diary):
        self.diary = diary
        self.net = nn.Linear(4, 1).cuda()

    def move(self, board):
        worth = self.net(board)
        self.diary.note("worth", worth.detach().sum())  # ROOT
        return worth.item() > 0


diary = Diary()
player = Player(diary)
for turn in range(3):
    player.move(torch.randn(4).cuda())
    diary.note("turn", turn)
print(diary.spread())
